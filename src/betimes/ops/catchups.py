"""Catching up after an outage: what was missed, and what of it waits for somebody's approval.

A decision is one row, durable at once. Carrying it out is an errand: a bounded number of parcels in
each transaction, which any janitor may do and which may be repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from betimes.domain.errors import IllegalTransition, NotFound
from betimes.domain.ids import ShardId, TenantId, to_text
from betimes.fairness.pace import drained_at, paced
from betimes.ops.checks import check_reason
from betimes.ops.desk import Desk
from betimes.store import episodes
from betimes.store.episodes import Catchup, JobShare, QueueShare
from betimes.store.joining import EpisodeState
from betimes.store.pool import Connection
from betimes.telemetry import Each, in_turn

__all__ = [
    "Catchup",
    "CatchupView",
    "EpisodeState",
    "Verdict",
    "carry_out",
    "decide_catchup",
    "get_catchup",
    "list_catchups",
]

SHARES_MAX = 20
PARCELS_PER_TRANSACTION = 200
STEPS_MAX = 50
EPISODES_MAX = 10
NEWEST = UUID(int=(1 << 128) - 1)


class Verdict(StrEnum):
    """What becomes of late work that waits."""

    APPROVE = "approve"
    DROP = "drop"


STATES = {Verdict.APPROVE: EpisodeState.APPROVED, Verdict.DROP: EpisodeState.DROPPED}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchupView:
    """An episode, when it would be through, and whom it concerns."""

    catchup: Catchup
    drained_at: datetime
    by_queue: Sequence[QueueShare] = ()
    by_job: Sequence[JobShare] = ()


async def list_catchups(
    desk: Desk, tenant: TenantId, *, before: UUID | None, most: int
) -> list[CatchupView]:
    """A page of episodes, newest first."""

    async def work(connection: Connection) -> list[CatchupView]:
        now = await desk.now(connection)
        found = await episodes.list_catchups(connection, tenant, before=before or NEWEST, most=most)
        return [CatchupView(catchup=one, drained_at=_drained_at(one, now)) for one in found]

    return await desk.transact(work, tenant=tenant)


async def get_catchup(desk: Desk, tenant: TenantId, catchup: UUID) -> CatchupView:
    """One episode, with the jobs and queues that have most of what waits."""

    async def work(connection: Connection) -> CatchupView:
        found = await episodes.read_catchup(connection, catchup)
        return await _view(desk, connection, _own(found, tenant, catchup))

    return await desk.transact(work, tenant=tenant)


async def decide_catchup(
    desk: Desk,
    tenant: TenantId,
    catchup: UUID,
    verdict: Verdict,
    *,
    actor: str | None = None,
    reason: str = "",
) -> CatchupView:
    """Let what waits run, paced, or drop it; the same decision twice is one."""
    check_reason(reason)
    state = STATES[verdict]

    async def work(connection: Connection) -> CatchupView:
        found = _own(await episodes.hold_catchup(connection, catchup), tenant, catchup)
        if found.state is not state:
            if found.state is not EpisodeState.WAITING:
                raise IllegalTransition(
                    f"expected a catch-up that waits for approval, "
                    f"got one that is {found.state.name.lower()}"
                )
            now = await desk.now(connection)
            found = await episodes.decide(
                connection, found, state, now=now, actor=actor, reason=reason
            )
        return await _view(desk, connection, found)

    return await desk.transact(work, tenant=tenant)


async def carry_out(
    desk: Desk, shard: ShardId, *, most: int = EPISODES_MAX, each: Each = in_turn
) -> int:
    """Carry out decisions about episodes of a shard; returns how many late runs were handled."""

    async def find(connection: Connection) -> list[UUID]:
        return await episodes.decided(connection, shard, most=most)

    found = {to_text("ctu", catchup): catchup for catchup in await desk.transact(find, tenant=None)}

    async def carry(text: str) -> int:
        handled = 0
        for _ in range(STEPS_MAX):
            done = await _carry_out(desk, found[text])
            handled += done
            if not done:
                break
        return handled

    return sum(await each(found, carry))


async def _carry_out(desk: Desk, catchup: UUID) -> int:
    """One bounded step; several janitors take turns at the row of the episode."""

    async def work(connection: Connection) -> tuple[int, Sequence[episodes.HeldLate], datetime]:
        found = await episodes.hold_catchup(connection, catchup)
        now = await desk.now(connection)
        if found is None or found.state not in (EpisodeState.APPROVED, EpisodeState.DROPPED):
            return 0, (), now
        parcels = await episodes.lock_held(connection, catchup, most=PARCELS_PER_TRANSACTION)
        if not parcels:
            await episodes.end_catchup(connection, found)
            return 0, (), now
        runs = sum(len(parcel.runs) for parcel in parcels)
        through, gone = found.paced_through, 0
        if found.state is EpisodeState.DROPPED:
            gone = await episodes.drop(connection, parcels, now=now)
        else:
            begin = max(now, await episodes.paced_through(connection, found.tenant))
            *turns, through = _turns(parcels, begin, found.per_second)
            await episodes.release(connection, parcels, turns)
        await episodes.note_carried_out(
            connection,
            found,
            runs=runs,
            released=0 if found.state is EpisodeState.DROPPED else runs,
            dropped=gone,
            through=through,
        )
        return runs, () if found.state is EpisodeState.DROPPED else parcels, now

    runs, released, now = await desk.transact(work, tenant=None)
    for parcel in released:
        desk.hints.hint(parcel.shard, parcel.queue, parcel.tenant, now)
    return runs


def _turns(
    parcels: Sequence[episodes.HeldLate], begin: datetime, per_second: float
) -> list[datetime]:
    """When each parcel has its turn: after as much time as the runs before it take."""
    places = [0]
    for parcel in parcels:
        places.append(places[-1] + len(parcel.runs))
    times = list(paced(places[-1] + 1, start=begin, per_second=per_second))
    return [times[place] for place in places]


def _own(found: Catchup | None, tenant: TenantId, catchup: UUID) -> Catchup:
    if found is None or found.tenant != tenant:
        raise NotFound(f"there is no catch-up {to_text('ctu', catchup)}")
    return found


async def _view(desk: Desk, connection: Connection, catchup: Catchup) -> CatchupView:
    now = await desk.now(connection)
    return CatchupView(
        catchup=catchup,
        drained_at=_drained_at(catchup, now),
        by_queue=await episodes.waiting_by_queue(connection, catchup.id, most=SHARES_MAX),
        by_job=await episodes.waiting_by_job(connection, catchup.id, most=SHARES_MAX),
    )


def _drained_at(catchup: Catchup, now: datetime) -> datetime:
    """An estimate: what has its turn already, and then what waits, if it were approved now."""
    if catchup.state in (EpisodeState.DROPPED, EpisodeState.OVER) or not catchup.held:
        return catchup.paced_through
    begin = max(now, catchup.paced_through)
    return drained_at(catchup.held, start=begin, per_second=catchup.per_second)
