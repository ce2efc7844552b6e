"""Keeping what is served: leases are prolonged between the steps of work, never beside it.

A lease means progress. Whoever works, planner or publisher, calls `keep` between two steps; what
both have passed lately is renewed, by one statement for all shards. What hangs in one of them is
not, and is gone a lease later. A row that is locked is one somebody of this node writes for, or one
that is being taken: it is left for the next time, because to wait for it would cost all others.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from betimes.config.settings import CoordinatorSettings
from betimes.coordinator.elector import TRUST_MARGIN
from betimes.coordinator.holdings import Held, Holdings
from betimes.coordinator.pace import Pace
from betimes.domain.clock import Clock
from betimes.rhythm import DatabaseTime
from betimes.store.shards import Shards

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FENCED_OUT = "fenced out"
"""Why a shard is lost of which the database says that it is not ours under this epoch."""


class Renewal:
    """Shared by planner and publisher: whoever comes first when it is time renews for all."""

    def __init__(
        self,
        *,
        shards: Shards,
        holdings: Holdings,
        pace: Pace,
        time: DatabaseTime,
        clock: Clock,
        settings: CoordinatorSettings,
    ) -> None:
        self._shards = shards
        self._holdings = holdings
        self._pace = pace
        self._time = time
        self._clock = clock
        self._ttl = settings.lease_ttl
        self._every = settings.renew_every.total_seconds()
        self._under_way = asyncio.Lock()

    async def between(self) -> None:
        """Renew in the middle of a pass."""
        if self._pace.policy.keeps_between:
            await self._keep(lambda one: max(one.acquired_at, one.renewed_at))

    async def keep(self) -> None:
        """Renew at the end of a pass: also what is new, so that its cursor is told."""
        await self._keep(lambda one: one.renewed_at)

    async def _keep(self, last: Callable[[Held], float]) -> None:
        """Prolong the leases of shards that make progress; the others are left to run out."""
        if self._under_way.locked():
            return
        async with self._under_way:
            asked_at = self._clock.monotonic()
            patience = self._pace.patience
            due = [
                one
                for one in self._holdings.trusted(asked_at)
                if asked_at - last(one) >= self._every
                and asked_at - min(one.planned_at, one.published_at) < patience
            ]
            if due:
                await self._renew(due, asked_at)

    async def _renew(self, due: Sequence[Held], asked_at: float) -> None:
        answer = await self._shards.renew(
            [(one.claim, instant(one.published_through_ms)) for one in due],
            ttl=self._ttl,
            now=self._clock.stated(),
        )
        self._pace.answered(self._clock.monotonic() - asked_at)
        if answer.now is not None:
            self._time.observe(answer.now)
        seconds = self._ttl.total_seconds()
        for one in due:
            if one.claim.shard in answer.renewed:
                one.renewed_at = asked_at
                one.term = one.term.renewed(
                    asked_at=asked_at, ttl=seconds, margin=seconds * TRUST_MARGIN
                )
            elif one.claim.shard not in answer.ours:
                self._holdings.lose(one.claim, why=FENCED_OUT)


def instant(milliseconds: int) -> datetime:
    """Milliseconds since 1970, as the database takes them."""
    return EPOCH + timedelta(milliseconds=milliseconds)
