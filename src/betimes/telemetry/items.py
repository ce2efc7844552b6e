"""A pass over many items: one that fails is reported and postponed, and the others go on."""

from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Protocol, TypeVar

from betimes.domain.errors import Contended, Unavailable
from betimes.telemetry.core import Telemetry
from betimes.telemetry.events import Event

FIRST_WAIT_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 3_600.0
POSTPONED_MAX = 10_000

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")


class Each(Protocol):
    """A way to do the same work for every item."""

    async def __call__(
        self, items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]
    ) -> list[Result]:
        """What came of each item that worked."""
        ...


async def in_turn(items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    """One after the other; the first that fails ends it."""
    return [await work(item) for item in items]


class Items:
    """Keeps the failure of one item from the others; each duty has its own.

    An item that fails is tried again after ten seconds, then after twice as long each time, up to
    an hour. While the store is away no item is at fault: that ends the pass, as everywhere.
    """

    def __init__(
        self,
        *,
        duty: str,
        telemetry: Telemetry,
        first_wait: float = FIRST_WAIT_SECONDS,
        longest_wait: float = LONGEST_WAIT_SECONDS,
    ) -> None:
        self._duty = duty
        self._telemetry = telemetry
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._failed = telemetry.counter("betimes_items_failed_total")
        self._postponed: dict[Hashable, tuple[float, float]] = {}
        """When an item is tried again, by the monotonic clock, and how long it waits then."""

    @property
    def postponed(self) -> frozenset[Hashable]:
        """The items that are not tried now."""
        now = self._telemetry.clock.monotonic()
        return frozenset(item for item, (at, _) in self._postponed.items() if at > now)

    async def each(
        self, items: Iterable[Item], work: Callable[[Item], Awaitable[Result]]
    ) -> list[Result]:
        """Do the work for every item that is not postponed; what came of those that worked."""
        waiting = self.postponed
        results = []
        for item in items:
            if item in waiting:
                continue
            try:
                results.append(await work(item))
            except Contended as error:
                self._fail(item, error)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is this item's
                self._fail(item, error)
            else:
                self._postponed.pop(item, None)
        return results

    def _fail(self, item: Hashable, error: Exception) -> None:
        _, waited = self._postponed.pop(item, (0.0, self._first_wait / 2))
        wait = min(waited * 2, self._longest_wait)
        while len(self._postponed) >= POSTPONED_MAX:
            self._postponed.pop(next(iter(self._postponed)))
        self._postponed[item] = self._telemetry.clock.monotonic() + wait, wait
        self._failed.add(1, duty=self._duty)
        self._telemetry.emit(
            Event(
                name="item.failed",
                level="error",
                error=error,
                measurements={"wait_seconds": wait},
                metadata={"duty": self._duty, "item": str(item)},
            )
        )
