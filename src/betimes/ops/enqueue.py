"""Ad-hoc runs, one by one and in bulk: a batch is one shard, one transaction, few statements.

The ids of a batch are made once and used for every repetition, so a commit whose reply was lost is
recognised by the rows it left. States are decided anew with each repetition, because what was far
from due then may be near by now.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from betimes.domain.errors import Bug, TooLarge
from betimes.domain.ids import (
    TAIL_MASK,
    RunId,
    ShardId,
    TenantId,
    compose,
    random_ids,
    to_ms,
)
from betimes.domain.parcel import Parcel
from betimes.domain.run import NewRun
from betimes.domain.spec import start_deadline_of
from betimes.domain.states import RunState, Trigger
from betimes.domain.terms import BARE, Terms, most_of, terms_of
from betimes.ops.checks import BATCH_RUNS_MAX, check_payload, check_run, encode_options
from betimes.ops.contents import sealed
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.parcelling import Place, pack_groups
from betimes.store.adhoc import Batch, Shape, existing, insert_parcels, insert_runs
from betimes.store.admit import declare
from betimes.store.pool import Connection

Look = tuple[object, ...]
Belonging = Callable[[Batch], Batch]
"""Says in a batch to whom its runs belong."""


async def enqueue_run(desk: Desk, tenant: TenantId, new: NewRun) -> RunId:
    """One run; concurrent callers do better with `ops.together`."""
    return (await enqueue_runs(desk, tenant, [new]))[0]


async def enqueue_runs(
    desk: Desk, tenant: TenantId, new: Sequence[NewRun], *, shard: ShardId | None = None
) -> list[RunId]:
    """All of them or none, in one transaction; the ids come back in the order given."""
    if any(one.dedupe is not None for one in new):
        raise Bug("runs with a dedupe key are enqueued by ops.dedupe")
    order = Order(desk, tenant, new, shard=desk.next_shard() if shard is None else shard)
    if not new:
        return []
    parcels = await desk.transact(order.place, tenant=tenant)
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
    return order.ids


def check_new_run(new: NewRun) -> None:
    """Everything that can be said about one run without asking anybody."""
    check_payload(new.payload)
    check_run(new)
    encode_options(new.options, new.target)


@dataclass(slots=True)
class Looks:
    """What the runs of an order look like; equal ones share one entry, checked once."""

    news: list[NewRun] = field(default_factory=list)
    options: list[str | None] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, new: Sequence[NewRun]) -> "Looks":
        """Check everything and fold what is alike."""
        looks, known = cls(), dict[Look, int]()
        for one in new:
            check_payload(one.payload)
            # Mappings are compared by identity: callers that build thousands of runs share them.
            key = (
                one.handler,
                one.queue,
                one.priority,
                one.due_at,
                one.delay,
                id(one.options) if one.options else 0,
                id(one.target) if one.target else 0,
            )
            place = known.get(key)
            if place is None:
                check_run(one)
                place = known[key] = len(looks.news)
                looks.news.append(one)
                looks.options.append(encode_options(one.options, one.target))
                looks.terms.append(terms_of(one.options) if one.options else BARE)
            looks.places.append(place)
        return looks

    def shapes(self, dues: Sequence[datetime], near: datetime) -> list[Shape]:
        """The rows they make, given what is near enough to need a parcel at once."""
        return [
            Shape(
                one.handler,
                one.queue,
                one.priority,
                due_at,
                RunState.QUEUED if due_at <= near else RunState.SCHEDULED,
                options,
                terms,
                None if deadline is None else due_at + deadline,
            )
            for one, due_at, options, terms in zip(
                self.news, dues, self.options, self.terms, strict=True
            )
            for deadline in (start_deadline_of(one.options) if one.options else None,)
        ]

    def mosts(self) -> dict[str, int | None]:
        """How many runs of each concurrency key may be in flight; the last word counts."""
        return {
            terms.gate: most_of(one.options)
            for one, terms in zip(self.news, self.terms, strict=True)
            if terms.gate is not None
        }


def sorted_ids(time_ms: int, shard: ShardId, entropy: bytes) -> list[RunId]:
    """Random ids in order, so that a batch goes into neighbouring pages of the index."""
    start = compose(time_ms, shard, 0).int
    words = struct.unpack(f">{len(entropy) // TAIL_BYTES}Q", entropy)
    return [RunId(UUID(int=start | tail)) for tail in sorted(word & TAIL_MASK for word in words)]


class Order:
    """Runs that one tenant asked for, on their way into one shard.

    Whoever has told their ids already gives them; they lead to this shard.
    """

    def __init__(
        self,
        desk: Desk,
        tenant: TenantId,
        new: Sequence[NewRun],
        *,
        shard: ShardId,
        ids: Sequence[RunId] = (),
        belonging: Belonging | None = None,
    ) -> None:
        if len(new) > BATCH_RUNS_MAX:
            raise TooLarge(
                f"expected at most {BATCH_RUNS_MAX} runs in a batch, got {len(new)}",
                code="batch_too_large",
            )
        self._desk = desk
        self._tenant = tenant
        self._shard = shard
        self._looks = Looks.of(new)
        self._payloads = [one.payload for one in new]
        self._dues: list[datetime] = []
        self._promised = list(ids)
        self._belonging = belonging
        self.ids: list[RunId] = []

    async def place(self, connection: Connection) -> list[Parcel]:
        """Insert runs and parcels; the parcels that wait now come back for the hints."""
        now = await self._desk.now(connection)
        if self.ids and await existing(connection, self._shard, self.ids):
            return []  # our own commit, whose reply was lost
        if not self.ids:
            self._dues = [one.due(now) for one in self._looks.news]
            self.ids = self._promised or self._make_ids()
        shapes = self._looks.shapes(self._dues, now + self._desk.margin)
        batch = Batch(
            shard=self._shard,
            tenant=self._tenant,
            created_at=now,
            trigger=Trigger.API,
            ids=self.ids,
            payloads=await sealed(self._desk, connection, self._tenant, self._payloads),
            shapes=[shapes[place] for place in self._looks.places],
        )
        await insert_runs(connection, self._belonging(batch) if self._belonging else batch)
        parcels = self._parcels(shapes)
        await insert_parcels(connection, parcels)
        await declare(connection, self._tenant, self._looks.mosts(), now=now)
        return parcels

    def _make_ids(self) -> list[RunId]:
        places = self._looks.places
        times = [to_ms(due) for due in self._dues]
        entropy = self._desk.entropy(len(places) * TAIL_BYTES)
        if len(times) == 1:
            return sorted_ids(times[0], self._shard, entropy)
        return [
            RunId(next(random_ids(times[place], self._shard, entropy[start : start + TAIL_BYTES])))
            for place, start in zip(places, range(0, len(entropy), TAIL_BYTES), strict=True)
        ]

    def _parcels(self, shapes: Sequence[Shape]) -> list[Parcel]:
        groups: dict[Place, list[RunId]] = {}
        for run, place in zip(self.ids, self._looks.places, strict=True):
            shape = shapes[place]
            if shape.state is RunState.QUEUED:
                key = (shape.queue, shape.priority, shape.due_at, shape.terms, shape.handler)
                groups.setdefault(key, []).append(run)
        return pack_groups(self._shard, self._tenant, groups)
