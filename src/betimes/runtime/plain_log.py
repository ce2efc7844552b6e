"""Events as lines of text: what a worker says where the server's own log is not installed."""

from typing import TextIO

from betimes.domain.clock import Clock
from betimes.telemetry.events import LEVELS, Event
from betimes.telemetry.redact import safe_text

LEVEL_DEFAULT = "info"


class PlainLog:
    """Writes each event of at least `level` as one line."""

    def __init__(self, stream: TextIO, clock: Clock, level: str = LEVEL_DEFAULT) -> None:
        self._stream = stream
        self._clock = clock
        names = list(LEVELS)
        self._least = names.index(level) if level in names else names.index(LEVEL_DEFAULT)  # type: ignore[arg-type]

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if LEVELS.index(event.level) < self._least:
            return
        about = {**event.metadata, **event.measurements}
        if event.error is not None:
            about["error"] = f"{type(event.error).__name__}: {event.error}"
        told = " ".join(f"{name}={safe_text(str(value))}" for name, value in about.items())
        at = self._clock.now().isoformat(timespec="milliseconds")
        self._stream.write(f"{at} {event.level:7} {event.name} {told}\n")
        self._stream.flush()
