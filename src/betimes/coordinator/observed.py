"""Leases as one node has watched them: what has run out by its own clock. Pure.

The database clock decides when a lease ends, until somebody sets that clock back: then every lease
lasts longer by as much, and nobody serves the shards of whoever died meanwhile. So each node notes
how long a lease had to go when it first saw it. One that is still the same when so much time has
passed here has not been renewed, and is over whatever the clock there says. No lease is longer than
the settings allow. That it may be taken is safe: the epoch rises, and an owner that is late after
all is fenced out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from betimes.config.settings import SHARD_LEASE_MAX
from betimes.domain.ids import ShardId
from betimes.store.shards import ShardSeen

SLACK = 0.1
"""Share of a lease that we wait longer: our clock may be faster than that of the database."""


@dataclass(slots=True)
class ObservedLeases:
    """Since when each shard has had the lease it has, and when that ends here."""

    _ends: dict[ShardId, tuple[datetime, float]] = field(default_factory=dict)

    def observe(self, seen: Iterable[ShardSeen], *, now: datetime, at: float) -> None:
        """Note leases that are new to us; `now` is the time there, `at` the one here."""
        before, self._ends = self._ends, {}
        for shard in seen:
            until = shard.lease_until
            if until is None or shard.owner is None:
                continue
            known = before.get(shard.shard)
            if known is None or known[0] != until:
                left = min(until - now, SHARD_LEASE_MAX).total_seconds()
                known = (until, at + max(0.0, left) * (1.0 + SLACK))
            self._ends[shard.shard] = known

    def stale(self, *, at: float) -> dict[ShardId, datetime]:
        """Leases that are over by our clock, named by their ends in the database."""
        return {shard: until for shard, (until, end) in self._ends.items() if at > end}
