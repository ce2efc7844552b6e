"""The one object that takes note: made in `app`, handed to everybody."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

from betimes.domain.clock import Clock
from betimes.domain.errors import Bug
from betimes.telemetry.catalogue import METRICS
from betimes.telemetry.events import Event, Handler, Level
from betimes.telemetry.instruments import Counter, Gauge, Histogram, Reading

Instrument = TypeVar("Instrument", Counter, Gauge, Histogram)


class Telemetry:
    """Spans, events and metrics of one process.

    Events go to the handlers, in order; metrics are kept here and read with `snapshot`. A handler
    that fails is counted and otherwise ignored: talking about work must never stop the work.
    """

    def __init__(self, *, clock: Clock, handlers: Sequence[Handler] = ()) -> None:
        self.clock = clock
        self._handlers = list(handlers)
        self._instruments: dict[str, Counter | Gauge | Histogram] = {}
        self._overflows = self.counter("betimes_telemetry_overflows_total")
        self._failures = self.counter("betimes_telemetry_failures_total")
        self._spans = self.histogram("betimes_span_seconds")

    def span(self, name: str, **metadata: object) -> "Span":
        """Measure what happens inside: `with telemetry.span("reaper.tick") as span: …`."""
        return Span(self, name, metadata)

    def event(
        self,
        name: str,
        *,
        level: Level = "info",
        error: BaseException | None = None,
        measurements: dict[str, float] | None = None,
        **metadata: object,
    ) -> None:
        """State that something happened."""
        self.emit(
            Event(
                name=name,
                level=level,
                error=error,
                measurements=measurements or {},
                metadata=metadata,
            )
        )

    def emit(self, event: Event) -> None:
        """Hand an event to every handler."""
        for handler in self._handlers:
            try:
                handler(event)
            except Exception:  # noqa: BLE001 -- whatever a handler does, the work goes on
                self._failures.add()

    def ended(self, span: "Span", *, seconds: float, error: BaseException | None) -> None:
        """Called by a span on its way out."""
        outcome = _outcome(error)
        self._spans.observe(seconds, span=span.name, outcome=outcome)
        if self._handlers:
            self.emit(
                Event(
                    name=span.name,
                    level=span.level_of_errors if outcome == "error" else "debug",
                    measurements={"seconds": seconds, **span.measurements},
                    metadata={"outcome": outcome, **span.metadata},
                    error=error if outcome == "error" else None,
                )
            )

    def counter(self, name: str) -> Counter:
        """The counter of that name; keep it, so that hot paths do not look it up."""
        return self._instrument(name, Counter)

    def gauge(self, name: str) -> Gauge:
        """The gauge of that name."""
        return self._instrument(name, Gauge)

    def histogram(self, name: str) -> Histogram:
        """The histogram of that name."""
        return self._instrument(name, Histogram)

    def snapshot(self) -> list[Reading]:
        """Every series of every metric used so far."""
        return [
            reading for _, kept in sorted(self._instruments.items()) for reading in kept.readings()
        ]

    def reading(self, name: str, **labels: str | int) -> float:
        """The value of one series, 0 when nothing was noted: what tests ask for."""
        wanted = tuple(sorted((label, str(value)) for label, value in labels.items()))
        kept = self._instruments.get(name)
        found = (
            [reading.value for reading in kept.readings() if reading.labels == wanted]
            if kept
            else []
        )
        return found[0] if found else 0.0

    def _overflowed(self) -> None:
        # The counter of overflows has no labels, so it cannot overflow itself.
        self._overflows.add()

    def _instrument(self, name: str, kind: type[Instrument]) -> Instrument:
        kept = self._instruments.get(name)
        if kept is None:
            metric = METRICS.get(name)
            if metric is None or metric.kind != kind.__name__.lower():
                raise Bug(f"no {kind.__name__.lower()} {name} in betimes.telemetry.catalogue")
            kept = self._instruments[name] = kind(metric, self._overflowed)
        if not isinstance(kept, kind):
            raise Bug(f"{name} is no {kind.__name__.lower()}")
        return kept


class Span:
    """Something that lasts. Numbers learned inside are added with `add`, words with `tell`."""

    __slots__ = ("_asked_at", "_telemetry", "level_of_errors", "measurements", "metadata", "name")

    def __init__(self, telemetry: Telemetry, name: str, metadata: dict[str, object]) -> None:
        self.name = name
        self.metadata = metadata
        self.measurements: dict[str, float] = {}
        self.level_of_errors: Level = "error"
        self._telemetry = telemetry
        self._asked_at = 0.0

    def add(self, **measurements: float) -> None:
        """Note numbers."""
        self.measurements.update(measurements)

    def tell(self, **metadata: object) -> None:
        """Note words."""
        self.metadata.update(metadata)

    def expect_errors(self) -> None:
        """Let errors be debug talk, because the caller reports them itself (see `Outage`)."""
        self.level_of_errors = "debug"

    def __enter__(self) -> Self:
        self._asked_at = self._telemetry.clock.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = self._telemetry.clock.monotonic() - self._asked_at
        self._telemetry.ended(self, seconds=seconds, error=error)


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"
