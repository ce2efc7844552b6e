"""Single runs: what they are, cancelling them, trying again, doing them over."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.dedupe import Dedupe
from betimes.domain.errors import IllegalTransition, NotFound
from betimes.domain.ids import RunId, TenantId, compose, shard_of, to_ms, to_text
from betimes.domain.parcel import Lane, Parcel
from betimes.domain.run import Holding, Run, shown_state, without_words
from betimes.domain.states import FINAL, RunState, Shown, Trigger, check_run
from betimes.ops.checks import check_payload
from betimes.ops.contents import open_runs, sealed_one
from betimes.ops.dedupe import OF_RUN, key_of
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.revival import revive_runs
from betimes.ops.sayings import open_errors, open_notes
from betimes.store.admit import Offered
from betimes.store.control import Frozen, ask_to_end, end_runs, freeze, hold, keep_words
from betimes.store.dedupe import holder_of
from betimes.store.ending import Follow
from betimes.store.forcing import end_by_force, follow_on, following
from betimes.store.intake import read_asked
from betimes.store.jobs import hold_jobs, to_optional_json
from betimes.store.pool import Connection
from betimes.store.publish import insert_parcels
from betimes.store.release import release
from betimes.store.run_notes import Note, read_notes
from betimes.store.runs import insert_manual, lock_run, new_run, read_holding, read_run

RUN_CANCELLED = "RUN_CANCELLED"
RETRIED = "RETRIED_BY_USER"
RETRYABLE = (RunState.RETRY_WAIT, RunState.DEAD, RunState.CANCELLED, RunState.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it is shown: the row, the parcel that holds it, and the state of both together."""

    run: Run
    holding: Holding | None
    state: Shown
    note: Note | None = None
    """What its worker has said about it; read for single runs only."""


async def get_run(desk: Desk, tenant: TenantId, run: RunId) -> RunView:
    """One run with its public state."""

    async def work(connection: Connection) -> RunView:
        now = await desk.now(connection)
        found = await read_run(connection, run) or await _asked_for(connection, run, now)
        if found is None or found.tenant != tenant:
            raise no_such_run(run)
        holding = None if found.state in FINAL else await read_holding(connection, run)
        notes = await read_notes(connection, found.shard, [run])
        opened = await open_notes(desk, connection, tenant, list(notes.values()))
        state = shown_state(found.state, holding, now)
        (found,) = await open_runs(desk, connection, tenant, [found])
        (found,) = await open_errors(desk, connection, tenant, [found])
        note = opened[0] if opened else None
        return RunView(run=found, holding=holding, state=state, note=note)

    return await desk.transact(work, tenant=tenant)


async def _asked_for(connection: Connection, run: RunId, now: datetime) -> Run | None:
    """A run that somebody's transaction has asked for a moment ago: as good as made."""
    asked = await read_asked(connection, run)
    if asked is None:
        return None
    made = new_run(
        run=run,
        tenant=asked.tenant,
        job=None,
        revision=None,
        trigger=Trigger.API,
        state=RunState.QUEUED if asked.due_at <= now else RunState.SCHEDULED,
        due_at=asked.due_at,
        fire_at=None,
        queue=asked.new.queue,
        priority=asked.new.priority,
        handler=asked.new.handler,
        payload=asked.new.payload,
    )
    return replace(made, options=asked.new.options)


async def cancel_run(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    code: str = RUN_CANCELLED,
    reason: str = "",
    grace: timedelta | None = None,
    force: bool = False,
) -> RunView:
    """A run that waits ends at once; one that a worker holds is told with its next heartbeat.

    With a grace the worker has so long to end it, and after that loses it; by force, at once.
    `reason` are the words of whoever asks: kept beside the code, never in its place.
    """
    offered: list[Offered] = []

    async def work(connection: Connection) -> RunView:
        nonlocal offered
        now = await desk.now(connection)
        follow = await _hold_following(connection, tenant, run, now)
        parcels = await hold(connection, shard_of(run), tenant, [run])
        found = await locked_run(connection, tenant, run)
        if found.state is RunState.CANCELLED:
            return RunView(run=found, holding=None, state=Shown.CANCELLED)
        parcel = parcels.get(run)
        if found.state not in FINAL and parcel is not None and parcel.worker is not None:
            if not force:
                by = None if grace is None else now + grace
                await ask_to_end(connection, found.shard, [run], at=now, reason=code, by=by)
                await keep_words(connection, run, reason)
                return await _view(connection, run, Shown.RUNNING)
            freed = await end_by_force(
                connection, found, parcel, reason=code, now=now, margin=desk.margin
            )
            await keep_words(connection, run, reason)
            offered = await release(connection, freed)
            return await _view(connection, run, Shown.CANCELLED)
        check_run(found.state, RunState.CANCELLED)
        await end_runs(
            connection, found.shard, [run], state=RunState.CANCELLED, reason=code, now=now
        )
        if follow is not None:
            await follow_on(connection, found.shard, follow)
        await keep_words(connection, run, reason)
        return await _view(connection, run, Shown.CANCELLED)

    view = await desk.transact(work, tenant=tenant)
    for one in offered:
        desk.hints.hint(*one.hint)
    return view


async def _hold_following(
    connection: Connection, tenant: TenantId, run: RunId, now: datetime
) -> Follow | None:
    """What follows the end of a run of a fixed delay, its job held, before its parcel is."""
    found = await read_run(connection, run)
    if found is None or found.tenant != tenant:
        return None
    follow = await following(connection, found, now)
    if follow is not None:
        await hold_jobs(connection, found.shard, [follow.job])
    return follow


async def cancel_by_key(desk: Desk, tenant: TenantId, key: str, *, reason: str = "") -> RunView:
    """Cancel the run that holds a dedupe key."""
    where = key_of(desk.shards, tenant, Dedupe(key=key), OF_RUN)

    async def find(connection: Connection) -> UUID | None:
        return await holder_of(connection, tenant, where)

    holder = await desk.transact(find, tenant=tenant)
    if holder is None:
        raise NotFound(f"no run holds the dedupe key {key!r}")
    return await cancel_run(desk, tenant, RunId(holder), reason=reason)


async def retry_run(
    desk: Desk, tenant: TenantId, run: RunId, *, reset_attempts: bool = False
) -> RunView:
    """One more try now, in the same run; its fence goes on rising from where it was."""
    tail = desk.entropy(TAIL_BYTES)
    done = False

    async def work(connection: Connection) -> tuple[RunView, list[Parcel]]:
        nonlocal done
        frozen = await freeze(connection, shard_of(run), now=desk.clock.stated())
        now = frozen.now
        parcels = await hold(connection, shard_of(run), tenant, [run])
        found = await locked_run(connection, tenant, run)
        if done and found.state is RunState.QUEUED:
            return await _view(connection, run, Shown.QUEUED), []  # our commit, its reply lost
        parcel = parcels.get(run)
        if found.state not in FINAL and parcel is not None and parcel.worker is not None:
            raise IllegalTransition("a run that is running cannot be retried; cancel it first")
        if found.state not in RETRYABLE:
            raise IllegalTransition(
                "expected a run that waits for a retry, is dead, cancelled or expired to retry, "
                f"got one that is {found.state.name.lower()}"
            )
        if parcel is None:
            check_published(found, frozen, near=now + desk.margin)
        done = True
        made = await revive_runs(
            connection,
            tenant,
            [run],
            visible=[now],
            tails=tail,
            reason=RETRIED,
            reset_attempts=reset_attempts,
        )
        return await _view(connection, run, Shown.QUEUED), made

    view, parcels = await desk.transact(work, tenant=tenant)
    hint_all(desk, parcels)
    return view


async def replay_run(
    desk: Desk, tenant: TenantId, run: RunId, *, payload: bytes | None = None
) -> RunId:
    """Do it over: a new run of the same work, due now, with its own id and attempts."""
    check_payload(payload)
    tail = int.from_bytes(desk.entropy(TAIL_BYTES), "big")
    fresh: Run | None = None

    async def work(connection: Connection) -> tuple[Run, list[Parcel]]:
        nonlocal fresh
        now = await desk.now(connection)
        found = await read_run(connection, run)
        if found is None or found.tenant != tenant:
            raise no_such_run(run)
        given = await sealed_one(desk, connection, tenant, payload)
        fresh = fresh or _again(found, now, tail, given)
        # What was said about the end of the old one says nothing about the new one.
        options = to_optional_json(without_words(found.options))
        if not await insert_manual(connection, fresh, options=options, now=now):
            return fresh, []
        parcel = parcel_of(fresh)
        await insert_parcels(connection, fresh.shard, [parcel])
        return fresh, [parcel]

    made, parcels = await desk.transact(work, tenant=tenant)
    hint_all(desk, parcels)
    return made.id


def parcel_of(run: Run, *, lane: Lane = Lane.ON_TIME) -> Parcel:
    """A parcel for one fresh run, named after it."""
    return Parcel(
        shard=run.shard,
        id=run.id,  # type: ignore[arg-type]  # a parcel is named after its first run
        tenant=run.tenant,
        queue=run.queue,
        priority=run.priority,
        visible_at=run.due_at,
        runs=(run.id,),
        lane=lane,
        terms=run.terms,
        handler=run.handler,
    )


def no_such_run(run: RunId) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    return NotFound(f"there is no run {to_text('run', run)}")


def _again(run: Run, now: datetime, tail: int, payload: bytes | None) -> Run:
    return replace(
        run,
        id=RunId(compose(to_ms(now), run.shard, tail)),
        state=RunState.QUEUED,
        trigger=Trigger.RETRY,
        due_at=now,
        fire_at=None,
        workflow_run=None,
        node=None,
        payload=run.payload if payload is None else payload,
        # Asked for by hand: beside others if need be; in a line it waits with them.
        overlap=0 if run.terms.line is None else run.overlap,
    )


def check_published(run: Run, frozen: Frozen, *, near: datetime) -> None:
    """Refuse while a publisher may have read the run and still make its one parcel.

    Ours would be a second one. Before it can have read it, and after its cursor has passed, all is
    well.
    """
    through = frozen.published_through
    if run.due_at <= near and (through is None or through < run.due_at):
        raise IllegalTransition(
            "the run was about to be published when it ended; it can be retried in a few seconds"
        )


async def locked_run(connection: Connection, tenant: TenantId, run: RunId) -> Run:
    """A run of the tenant, held until the transaction ends."""
    found = await lock_run(connection, run)
    if found is None or found.tenant != tenant:
        raise no_such_run(run)
    return found


async def _view(connection: Connection, run: RunId, state: Shown) -> RunView:
    found = await read_run(connection, run)
    if found is None:
        raise no_such_run(run)
    return RunView(run=found, holding=await read_holding(connection, run), state=state)


def hint_all(desk: Desk, parcels: list[Parcel]) -> None:
    """Say where something becomes visible; after the commit."""
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
