"""The desk: what every verb is given. Made once by `app`, shared by all requests."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

from betimes.domain.clock import Clock
from betimes.domain.ids import ParcelId, ShardId, TenantId, compose, to_ms
from betimes.ops.shelf import Shelf
from betimes.ops.vault import Vault
from betimes.schedule import ScheduleCache
from betimes.store.ask import one
from betimes.store.database import Database
from betimes.store.hints import Hinter
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.remote import SPECS_BYTES_MAX, KnownSpecs

T = TypeVar("T")
SQL = load("server")
MARGIN = timedelta(seconds=10)
SEEN_WITHIN = timedelta(seconds=30)
TAIL_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Store, clock, chance and hints; `margin` is `coordinator.margin` of the settings.

    A tenant of None means the service itself: janitor, demo, compatibility doors.
    """

    database: Database
    clock: Clock
    hints: Hinter
    entropy: Callable[[int], bytes]
    shards: int
    tzdata: str
    margin: timedelta = MARGIN
    seen_within: timedelta = SEEN_WITHIN
    """Workers and nodes with no younger heartbeat are gone: whatever they held has run out."""
    turns: Iterator[int] = field(default_factory=count)
    schedules: ScheduleCache = field(default_factory=ScheduleCache)
    specs: KnownSpecs = field(default_factory=lambda: KnownSpecs(SPECS_BYTES_MAX))
    """Definitions that runs were leased under, for as long as there is room for them."""
    vault: Vault | None = None
    """What seals and opens; none on a node without a master key."""
    shelf: Shelf | None = None
    """Where large things are kept, if not in the database."""
    seals: bool = False
    """Whether payloads and results are sealed where they lie in their rows."""
    lane: Lane = Lane.API
    """Whose connections its transactions use."""
    connection: "Connection | None" = None
    at: datetime | None = None
    """The time of a transaction whose verbs share one."""

    async def transact(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        tenant: TenantId | None,
        row_by_row: bool = False,
        patient: bool = True,
    ) -> T:
        """One transaction as the tenant; the work is always safe to repeat with the same ids."""
        if self.connection is not None:
            return await work(self.connection)
        return await self.database.transact(
            work,
            lane=self.lane,
            repeatable=True,
            tenant=tenant,
            row_by_row=row_by_row,
            patient=patient,
        )

    def on(self, lane: Lane) -> "Desk":
        """The same desk with the connections of another class of work."""
        return replace(self, lane=lane)

    def inside(
        self, connection: Connection, hints: Hinter, *, at: datetime | None = None
    ) -> "Desk":
        """The same desk inside a transaction that somebody else opened and will end."""
        return replace(self, connection=connection, hints=hints, at=at)

    async def now(self, connection: Connection) -> datetime:
        """The database clock, unless a test states its own."""
        if (stated := self.at or self.clock.stated()) is not None:
            return stated
        answer: datetime = (await one(connection, SQL["read_clock"]))["now"]
        return answer

    def next_shard(self) -> ShardId:
        """Round robin, so that batches spread evenly over owners."""
        return ShardId(next(self.turns) % self.shards)

    def parcel_ids(self, times: Sequence[datetime], shard: ShardId) -> list[ParcelId]:
        """Ids for new parcels, one for each time at which one becomes visible."""
        tails = self.entropy(len(times) * TAIL_BYTES)
        return [
            ParcelId(compose(to_ms(at), shard, int.from_bytes(tails[start : start + TAIL_BYTES])))
            for at, start in zip(times, range(0, len(tails), TAIL_BYTES), strict=True)
        ]
