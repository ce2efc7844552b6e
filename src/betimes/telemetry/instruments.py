"""Counters, gauges and histograms: thin values, cheap enough for hot paths.

One event loop owns them; a thread hands its numbers over with `call_soon_threadsafe`. The number
of series per metric is bounded: what comes after is gathered in one series labelled `overflow`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from betimes.domain.errors import Bug
from betimes.telemetry.catalogue import Metric

SERIES_MAX = 2_000
OVERFLOW = "overflow"

Label = str | int
Pairs = tuple[tuple[str, Label], ...]
Cell = TypeVar("Cell")


@dataclass(frozen=True, slots=True)
class Reading:
    """One series at one moment; `buckets` counts per bound, not cumulated, the last above all."""

    metric: Metric
    labels: tuple[tuple[str, str], ...]
    value: float
    buckets: tuple[int, ...] = ()


class _Number:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class _Distribution:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0


class _Series(Generic[Cell]):
    """The cells of one metric, found by their labels in whatever order these are given."""

    def __init__(
        self, metric: Metric, make: Callable[[], Cell], on_overflow: Callable[[], None]
    ) -> None:
        self.metric = metric
        self.by_pairs: dict[Pairs, Cell] = {}
        self._make = make
        self._on_overflow = on_overflow
        self._canonical: dict[tuple[tuple[str, str], ...], Cell] = {}

    def open(self, pairs: Pairs) -> Cell:
        """The cold path: check the labels once, then remember the cell."""
        if {name for name, _ in pairs} != set(self.metric.labels):
            expected, got = ", ".join(self.metric.labels), ", ".join(name for name, _ in pairs)
            raise Bug(f"{self.metric.name}: expected the labels ({expected}), got ({got})")
        if len(self.by_pairs) >= SERIES_MAX:
            self._on_overflow()
            pairs = tuple((name, OVERFLOW) for name in self.metric.labels)
        canonical = tuple(sorted((name, str(value)) for name, value in pairs))
        cell = self._canonical.get(canonical)
        if cell is None:
            cell = self._canonical[canonical] = self._make()
        self.by_pairs[pairs] = cell
        return cell

    def drop(self, pairs: Pairs) -> None:
        """Forget a series; what it measured no longer exists."""
        cell = self.by_pairs.get(pairs)
        self.by_pairs = {key: other for key, other in self.by_pairs.items() if other is not cell}
        self._canonical = {
            key: other for key, other in self._canonical.items() if other is not cell
        }

    def __iter__(self) -> Iterator[tuple[tuple[tuple[str, str], ...], Cell]]:
        return iter(self._canonical.items())


class Counter:
    """Only ever goes up."""

    __slots__ = ("_series",)

    def __init__(self, metric: Metric, on_overflow: Callable[[], None]) -> None:
        self._series = _Series(metric, _Number, on_overflow)

    def add(self, amount: float = 1, /, **labels: Label) -> None:
        """Count something; the amount is not checked here, where it would cost every caller."""
        pairs = tuple(labels.items())
        cell = self._series.by_pairs.get(pairs) or self._series.open(pairs)
        cell.value += amount

    def readings(self) -> Iterator[Reading]:
        """Every series as it stands."""
        return (Reading(self._series.metric, key, cell.value) for key, cell in self._series)


class Gauge:
    """Goes up and down."""

    __slots__ = ("_series",)

    def __init__(self, metric: Metric, on_overflow: Callable[[], None]) -> None:
        self._series = _Series(metric, _Number, on_overflow)

    def set(self, value: float, /, **labels: Label) -> None:
        """State the present value."""
        pairs = tuple(labels.items())
        cell = self._series.by_pairs.get(pairs) or self._series.open(pairs)
        cell.value = value

    def drop(self, **labels: Label) -> None:
        """Stop reporting a series: the thing it measured is gone."""
        self._series.drop(tuple(labels.items()))

    def readings(self) -> Iterator[Reading]:
        """Every series as it stands."""
        return (Reading(self._series.metric, key, cell.value) for key, cell in self._series)


class Histogram:
    """How values are spread over bounds."""

    __slots__ = ("_series",)

    def __init__(self, metric: Metric, on_overflow: Callable[[], None]) -> None:
        self._series = _Series(metric, lambda: _Distribution(metric.bounds), on_overflow)

    def observe(self, value: float, /, **labels: Label) -> None:
        """Add one value."""
        pairs = tuple(labels.items())
        cell = self._series.by_pairs.get(pairs) or self._series.open(pairs)
        cell.counts[bisect_left(cell.bounds, value)] += 1
        cell.total += value

    def observe_times(self, value: float, times: int, /, **labels: Label) -> None:
        """Add the same value several times."""
        pairs = tuple(labels.items())
        cell = self._series.by_pairs.get(pairs) or self._series.open(pairs)
        cell.counts[bisect_left(cell.bounds, value)] += times
        cell.total += value * times

    def readings(self) -> Iterator[Reading]:
        """Every series as it stands; the value is the sum of all observed."""
        return (
            Reading(self._series.metric, key, cell.total, tuple(cell.counts))
            for key, cell in self._series
        )
