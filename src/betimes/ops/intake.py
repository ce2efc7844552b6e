"""Runs that were asked for inside transactions of others are made, in short transactions of ours.

The asker knows the id of its run already, and nothing may be refused any more: its transaction has
committed. So every row becomes a run with that id. One whose dedupe key turns out to be taken, by
a commit the asker could not see, becomes a run that is over, skipped as `DEDUPED`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from betimes.domain.errors import FencedOut, Refused, Unavailable
from betimes.domain.ids import RunId, ShardId, TenantId, random_ids, to_ms, to_text
from betimes.domain.parcel import Parcel
from betimes.domain.states import RunState, Trigger
from betimes.ops.contents import sealed
from betimes.ops.dedupe import DEDUPED, MadeRun, RunWishes
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.enqueue import Looks
from betimes.store.adhoc import Batch, insert_runs
from betimes.store.audit import Act, Telling, append_many
from betimes.store.control import end_runs
from betimes.store.database import Database
from betimes.store.intake import Asked, delete_asked, lock_asked, refuse_asked, waiting_shards
from betimes.store.pool import Connection, Lane

BATCH_MAX = 500


@dataclass(slots=True)
class TakenIn:
    """What became of a batch."""

    made: int = 0
    deduplicated: int = 0
    refused: list[tuple[RunId, str]] = field(default_factory=list)
    parcels: list[Parcel] = field(default_factory=list)

    def add(self, other: "TakenIn") -> None:
        """What another batch came to."""
        self.made += other.made
        self.deduplicated += other.deduplicated
        self.refused += other.refused
        self.parcels += other.parcels

    @property
    def total(self) -> int:
        """Everything that was looked at."""
        return self.made + self.deduplicated + len(self.refused)


async def shards_to_take_in(database: Database) -> list[ShardId]:
    """Where something waits."""
    return await database.transact(waiting_shards, lane=Lane.ENGINE, repeatable=True)


async def take_in(desk: Desk, shard: ShardId, *, most: int = BATCH_MAX) -> TakenIn:
    """Make what waits in one shard, up to a number; a repetition finds only what is left."""
    try:
        taken = await _take(desk, shard, most, [])
    except (Unavailable, FencedOut):
        raise
    except Exception:  # noqa: BLE001 -- it is told with the one it belongs to
        # One of them is at fault; the others must not suffer for it.
        taken = await _take_singly(desk, shard, most)
    for parcel in taken.parcels:
        desk.hints.hint(*parcel.hint)
    return taken


async def _take(desk: Desk, shard: ShardId, most: int, seen: list[Asked]) -> TakenIn:
    """One transaction; what it has found is left in `seen`, even when it fails."""

    async def work(connection: Connection) -> TakenIn:
        taken = TakenIn()
        inner = desk.inside(connection, desk.hints, at=await desk.now(connection))
        seen[:] = await lock_asked(connection, shard, most=most)
        for group in _groups(seen):
            await _make(inner, connection, shard, group, taken)
        return taken

    return await desk.database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def _take_singly(desk: Desk, shard: ShardId, most: int) -> TakenIn:
    whole = TakenIn()
    for _ in range(most):
        seen: list[Asked] = []
        try:
            taken = await _take(desk, shard, 1, seen)
        except (Unavailable, FencedOut):
            raise
        except Exception as error:
            if not seen:
                raise  # nobody's in particular
            why = error.sentence if isinstance(error, Refused) else f"{type(error).__name__}"
            await _put_aside(desk.database, seen[0].id, why)
            taken = TakenIn(refused=[(seen[0].id, why)])
        whole.add(taken)
        if not seen:
            break
    return whole


async def _put_aside(database: Database, run: RunId, why: str) -> None:
    async def work(connection: Connection) -> None:
        await refuse_asked(connection, run, why)

    await database.transact(work, lane=Lane.ENGINE, repeatable=True)


def _groups(asked: Iterable[Asked]) -> list[list[Asked]]:
    groups: dict[TenantId, list[Asked]] = {}
    for one in asked:
        groups.setdefault(one.tenant, []).append(one)
    return list(groups.values())


async def _make(
    desk: Desk, connection: Connection, shard: ShardId, group: Sequence[Asked], taken: TakenIn
) -> None:
    tenant, ids = group[0].tenant, [one.id for one in group]
    if not group[0].known:
        raise Refused("the tenant is gone")
    wishes = RunWishes(desk, tenant, [one.new for one in group], shard=shard, ids=ids)
    taken.parcels += await wishes.place(connection)
    now = await desk.now(connection)
    known = [one for one, made in zip(group, wishes.made, strict=True) if made.deduplicated]
    await _insert_known(desk, connection, shard, known, now)
    await _note(desk, connection, shard, group, wishes.made, now)
    await delete_asked(connection, shard, ids)
    taken.made += len(group) - len(known)
    taken.deduplicated += len(known)


async def _insert_known(
    desk: Desk, connection: Connection, shard: ShardId, known: Sequence[Asked], now: datetime
) -> None:
    """The id was told to somebody, so it leads to a run that says what became of it."""
    if not known:
        return
    looks = Looks.of([replace(one.new, dedupe=None) for one in known])
    # What is far from due has no parcel; nor has what ends in this very transaction.
    shapes = [
        replace(shape, state=RunState.SCHEDULED)
        for shape in looks.shapes([one.due(now) for one in looks.news], now)
    ]
    await insert_runs(
        connection,
        Batch(
            shard=shard,
            tenant=known[0].tenant,
            created_at=now,
            trigger=Trigger.API,
            ids=[one.id for one in known],
            payloads=await sealed(
                desk, connection, known[0].tenant, [one.new.payload for one in known]
            ),
            shapes=[shapes[place] for place in looks.places],
        ),
    )
    await end_runs(
        connection,
        shard,
        [one.id for one in known],
        state=RunState.SKIPPED,
        reason=DEDUPED,
        now=now,
    )


async def _note(
    desk: Desk,
    connection: Connection,
    shard: ShardId,
    group: Sequence[Asked],
    made: Sequence[MadeRun],
    now: datetime,
) -> None:
    """Audit and events, as if each had come through the API."""
    entropy = desk.entropy(len(group) * TAIL_BYTES)
    tellings = [
        Telling(
            Act(
                tenant=one.tenant,
                at=now,
                actor={"type": "producer", "id": one.producer},
                action="runs.create",
                resource=to_text("run", one.id),
            ),
            "run.queued",
            event_id,
            {"run_id": to_text("run", one.id), "job_id": None},
        )
        for one, what, event_id in zip(
            group, made, random_ids(to_ms(now), shard, entropy), strict=True
        )
        if not what.deduplicated
    ]
    if tellings:
        await append_many(connection, group[0].tenant, shard, tellings)
