"""Moving a run that waits: another time, another queue, another priority.

A run that waits in a parcel moves into a new one. A run that is only planned keeps its row as the
place where the publisher will find queue and priority; given another time it gets its parcel now,
because the publisher looks for runs where their ids say, and an id never changes.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from betimes.domain.errors import IllegalTransition, Invalid
from betimes.domain.ids import ParcelId, RunId, TenantId, compose, shard_of, to_ms
from betimes.domain.parcel import Hold, Lane, Parcel
from betimes.domain.run import Run, shown_state
from betimes.domain.states import FINAL, RunState
from betimes.ops.checks import check_instant, check_priority, check_queue
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.runs import RunView, check_published, hint_all, locked_run
from betimes.store.control import HeldParcel, freeze, hold, take_out
from betimes.store.pool import Connection
from betimes.store.publish import insert_parcels
from betimes.store.runs import change_run as store_run
from betimes.store.runs import read_holding, read_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be different about a run; None stays."""

    due_at: datetime | None = None
    queue: str | None = None
    priority: int | None = None

    def check(self) -> None:
        """Refuse what makes no sense."""
        if self.due_at is None and self.queue is None and self.priority is None:
            raise Invalid("expected due_at, queue or priority, got none of them")
        if self.due_at is not None:
            check_instant(self.due_at, pointer="/due_at")
        if self.queue is not None:
            check_queue(self.queue)
        if self.priority is not None:
            check_priority(self.priority)

    def applied(self, run: Run, now: datetime) -> Run:
        """The run as it will be; a time that has passed means now."""
        return replace(
            run,
            due_at=run.due_at if self.due_at is None else max(self.due_at, now),
            queue=run.queue if self.queue is None else self.queue,
            priority=run.priority if self.priority is None else self.priority,
        )


async def change_run(desk: Desk, tenant: TenantId, run: RunId, change: Change) -> RunView:
    """Change a run that waits; one that a worker holds, or that is over, stays as it is."""
    change.check()
    tail = int.from_bytes(desk.entropy(TAIL_BYTES), "big")

    async def work(connection: Connection) -> tuple[RunView, list[Parcel]]:
        frozen = await freeze(connection, shard_of(run), now=desk.clock.stated())
        parcel = (await hold(connection, shard_of(run), tenant, [run])).get(run)
        found = await locked_run(connection, tenant, run)
        _check_waits(found, parcel)
        moved = change.applied(found, frozen.now)
        made: list[Parcel] = []
        if parcel is None:
            # Its publisher may be about to make the one parcel it is to have.
            check_published(found, frozen, near=frozen.now + desk.margin)
        if parcel is not None or moved.due_at != found.due_at:
            made = [await repack(connection, moved, parcel, tail)]
            if moved.state is RunState.SCHEDULED:
                moved = replace(moved, state=RunState.QUEUED)
        await store_run(connection, moved)
        return await _seen(connection, run, frozen.now), made

    view, parcels = await desk.transact(work, tenant=tenant)
    hint_all(desk, parcels)
    return view


def _check_waits(run: Run, parcel: HeldParcel | None) -> None:
    if run.state in FINAL:
        raise IllegalTransition(
            f"expected a run that waits, got one that is {run.state.name.lower()}"
        )
    if parcel is not None and parcel.worker is not None:
        raise IllegalTransition("expected a run that waits, got one that is running")


async def repack(connection: Connection, run: Run, before: HeldParcel | None, tail: int) -> Parcel:
    """A parcel of its own, whose fence goes on from the highest one the run ever had."""
    if before is not None:
        await take_out(connection, run.shard, {run.id: before})
    parcel = Parcel(
        shard=run.shard,
        id=ParcelId(compose(to_ms(run.due_at), run.shard, tail)),
        tenant=run.tenant,
        queue=run.queue,
        priority=run.priority,
        visible_at=run.due_at,
        runs=(run.id,),
        lane=Lane.RETRY if run.state is RunState.RETRY_WAIT else Lane.ON_TIME,
        fence=run.fence if before is None else max(run.fence, before.fence),
        # Its id may not say any more when it is due: those who come after find it in the line.
        terms=run.terms._replace(line=run.job) if run.overlap else run.terms,
        # What never started is decided upon when it is due, as if it had been published.
        held=Hold.VERDICT if run.overlap and run.state is not RunState.RETRY_WAIT else Hold.NONE,
        handler=run.handler,
    )
    await insert_parcels(connection, run.shard, [parcel])
    return parcel


async def _seen(connection: Connection, run: RunId, now: datetime) -> RunView:
    found = await read_run(connection, run)
    if found is None:
        raise IllegalTransition("expected a run that waits, got none any more")
    holding = await read_holding(connection, run)
    return RunView(run=found, holding=holding, state=shown_state(found.state, holding, now))
