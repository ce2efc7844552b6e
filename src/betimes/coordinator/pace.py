"""How much a coordinator takes on, from how fast it has lately been. Pure arithmetic.

A node that is far from its database, or has little of a processor, works in slow passes. It must do
less then, never nothing, and must not lose what it holds only to take it again:

    patience    what counts as stuck is measured in passes of this node, not in seconds
    budget      a pass begins no new work after so long; what is left comes first in the next one
    takes       while passes are slow, fewer shards at once, and none before the last are served
    capacity    how many shards it can serve; the others give it no more while they can serve them

`Pace` measures, `PacePolicy` decides. `ONE_BY_ONE` decides as if all were near and quick.
"""

from collections import deque
from dataclasses import dataclass
from statistics import median

PASSES_MISSED_MAX = 3
PATIENCE_LEASES_MAX = 3.0
"""However slow passes are: what has not moved for so many leases is stuck."""
PASS_SHARE = 0.2
"""The share of a lease that a pass may take before it is too long."""
PLAN_SHARE = 0.5
BRISK_SHARE = 0.05
"""The share of a lease below which passes are quick: nothing is held back."""
TRIPS_PER_PASS = 8
"""Round trips of a pass that publishes; for the time before one has been measured."""
MEASURED = 5
MEASURED_LEAST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PacePolicy:
    """What follows from measured passes; seconds everywhere."""

    together: int = 64
    """Most shards in one statement."""
    keeps_between: bool = True
    """Whether leases are renewed inside a pass, or only at its end."""
    measured: bool = True
    """Whether patience, budget and what is taken follow the measured pace."""

    def patience(self, *, period: float, slowest: float, lease: float) -> float:
        """How long a shard may go without being passed before its lease is left to run out."""
        if not self.measured:
            return min(PASSES_MISSED_MAX * period, lease)
        return min(PASSES_MISSED_MAX * max(period, slowest), PATIENCE_LEASES_MAX * lease)

    def budget(self, *, lease: float, share: float = PASS_SHARE) -> float:
        """How long a pass may go on beginning new work."""
        return lease * share if self.measured else float("inf")

    def turns(self, at_once: int, *, pass_seconds: float, lease: float) -> int:
        """How many shards are planned side by side: one more while most of the time is waiting."""
        slow = self.measured and pass_seconds > lease * BRISK_SHARE
        return at_once + 1 if slow else at_once

    def takes(self, *, shards: int, pass_seconds: float, lease: float, unserved: int) -> int:
        """How many of all shards to take now; `unserved` were taken and have seen no pass."""
        brisk = lease * BRISK_SHARE
        if not self.measured or pass_seconds <= brisk:
            return shards
        return 0 if unserved else max(1, int(shards * brisk / pass_seconds))

    def capacity(
        self, known: int | None, *, held: int, pass_seconds: float, lease: float, shards: int
    ) -> int | None:
        """How many shards this node can serve; None when it could serve all.

        It shrinks when passes are too long and grows when they take less than half of what they
        may, so that it rests in between.
        """
        limit = lease * PASS_SHARE
        if not self.measured:
            return None
        if pass_seconds > limit:
            now = held if known is None else min(held, known)
            return max(1, int(now * limit / pass_seconds))
        if known is None or pass_seconds > limit / 2:
            return known
        return None if known * 2 >= shards else known * 2


ONE_BY_ONE = PacePolicy(together=1, keeps_between=False, measured=False)
"""What was before there was a pace: each shard by itself, renewed after the last one."""


class Pace:
    """The latest passes of this node, as measured on the monotonic clock."""

    def __init__(self, *, lease: float, period: float, policy: PacePolicy | None = None) -> None:
        self.policy = policy or PacePolicy()
        self.capacity: int | None = None
        self._lease = lease
        self._period = period
        self._passes: deque[float] = deque(maxlen=MEASURED)
        self._turns: deque[float] = deque(maxlen=MEASURED)
        self._trips: deque[float] = deque(maxlen=MEASURED)

    def passed(self, seconds: float) -> None:
        """The publisher has passed over all shards."""
        self._passes.append(seconds)

    def turned(self, seconds: float) -> None:
        """The planner has worked through a page of a shard."""
        self._turns.append(seconds)

    def answered(self, seconds: float) -> None:
        """The database has answered one question."""
        self._trips.append(seconds)

    @property
    def pass_seconds(self) -> float:
        """What a pass takes: the middle of the last ones, so that a single hiccup says nothing."""
        told = TRIPS_PER_PASS * median(self._trips) if self._trips else 0.0
        return max(told, median(self._passes) if self._passes else 0.0)

    @property
    def patience(self) -> float:
        """How long a shard may go without being passed."""
        slowest = max([self.pass_seconds, *self._passes, *self._turns])
        return self.policy.patience(period=self._period, slowest=slowest, lease=self._lease)

    @property
    def budget(self) -> float:
        """How long a pass of the publisher may go on beginning new work."""
        return self.policy.budget(lease=self._lease)

    @property
    def plan_budget(self) -> float:
        """How long each part of a pass of the planner may: it works minutes ahead."""
        return self.policy.budget(lease=self._lease, share=PLAN_SHARE)

    def turns(self, at_once: int) -> int:
        """How many shards are planned side by side."""
        return self.policy.turns(at_once, pass_seconds=self.pass_seconds, lease=self._lease)

    def takes(self, *, shards: int, unserved: int) -> int:
        """How many of all shards to take now."""
        return self.policy.takes(
            shards=shards, pass_seconds=self.pass_seconds, lease=self._lease, unserved=unserved
        )

    def weigh(self, *, held: int, shards: int) -> bool:
        """Judge the capacity anew from what was measured since it last changed; whether it did.

        A node that holds nothing makes no passes, but still asks questions.
        """
        if len(self._trips) < MEASURED_LEAST:
            return False
        before = self.capacity
        self.capacity = self.policy.capacity(
            before,
            held=held,
            pass_seconds=self.pass_seconds,
            lease=self._lease,
            shards=shards,
        )
        if self.capacity == before:
            return False
        self._passes.clear()
        self._trips.clear()
        return True
