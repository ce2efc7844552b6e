"""Who next: weighted shares of a queue, by virtual time.

Everybody who waits has a virtual time. Serving somebody moves theirs forward by the amount served
over their weight; the one whose time is least is served next. Over any busy period each gets its
weight's part of what was served, to within one helping, and nobody who waits is passed over for
longer than all others together need for one helping each.

Who was away begins at the least time of those who wait: idleness earns no credit, and a newcomer is
served soon without pushing the others back.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
KEPT_MAX = 10_000


class Shares(Generic[K]):
    """The virtual times of those who wait, as seen by one server."""

    def __init__(self, *, kept_max: int = KEPT_MAX) -> None:
        self._times: dict[K, float] = {}
        self._now = 0.0
        self._kept_max = kept_max

    def order(self, waiting: Mapping[K, float]) -> list[K]:
        """Everybody who waits, with their weight, in the order of service."""
        self._admit(waiting)
        return sorted(waiting, key=self._times.__getitem__)

    def pick(self, waiting: Mapping[K, float]) -> K | None:
        """The one to serve next; None when nobody waits."""
        if not waiting:
            return None
        self._admit(waiting)
        return min(waiting, key=self._times.__getitem__)

    def charge(self, who: K, amount: float, weight: float) -> None:
        """Somebody was served so much."""
        if weight <= 0:
            raise ValueError(f"a weight is positive, got {weight}")
        self._times[who] = self._times.get(who, self._now) + amount / weight

    def _admit(self, waiting: Mapping[K, float]) -> None:
        known = [time for who in waiting if (time := self._times.get(who)) is not None]
        # Never backwards: else somebody who comes and goes would find an old, low time again.
        self._now = max(self._now, min(known, default=self._now))
        for who in waiting:
            if self._times.get(who, -1.0) < self._now:
                self._times[who] = self._now
        if len(self._times) > self._kept_max:
            self._times = {who: self._times[who] for who in waiting}
