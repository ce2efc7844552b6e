"""Fires by hand: run now, and skip the next ones."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from betimes.domain.errors import IllegalTransition, Invalid
from betimes.domain.ids import JobId, RunId, TenantId, compose, floor_of, shard_of, to_ms
from betimes.domain.job import Job
from betimes.domain.parcel import Parcel
from betimes.domain.run import Run
from betimes.domain.spec import start_deadline_of
from betimes.domain.states import FINAL, JobState, RunState, Trigger
from betimes.domain.terms import terms_of
from betimes.fairness.overlap import OverlapPolicy, policy_of
from betimes.ops.change_run import repack
from betimes.ops.checks import check_instant, check_payload, check_priority
from betimes.ops.contents import sealed_one
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.grip import Grip, grip
from betimes.ops.outlook import run_id
from betimes.ops.runs import locked_run
from betimes.ops.timetable import read_timetable
from betimes.schedule import Fire
from betimes.store.control import end_runs, find_fires, find_planned, hold
from betimes.store.pool import Connection
from betimes.store.publish import place_runs
from betimes.store.runs import change_run, insert_manual, insert_skipped, new_run

SKIPPED_BY_USER = "SKIPPED_BY_USER"
SKIP_MAX = 100
LOOK_MAX = 1_000


class Overlap(StrEnum):
    """Whether a run by hand obeys the overlap policy of its job, or runs beside anything."""

    INHERIT = "inherit"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to be different about a run by hand."""

    payload: bytes | None = None
    priority: int | None = None
    at: datetime | None = None
    scheduled_for: datetime | None = None
    overlap: Overlap = Overlap.INHERIT

    def check(self) -> None:
        """Refuse what makes no sense."""
        check_payload(self.payload)
        if self.priority is not None:
            check_priority(self.priority)
        for instant, pointer in ((self.at, "/at"), (self.scheduled_for, "/scheduled_for")):
            if instant is not None:
                check_instant(instant, pointer=pointer)

    def run(self, job: Job, run: RunId, *, due_at: datetime, near: datetime) -> Run:
        """The run of a job that this asks for."""
        definition = job.definition
        chosen = definition.priority if self.priority is None else self.priority
        policy = OverlapPolicy.ALLOW
        if self.overlap is Overlap.INHERIT:
            policy = policy_of(definition.overlap, fixed_delay=definition.has_fixed_delay)
        deadline = start_deadline_of(definition.options)
        made = new_run(
            run=run,
            tenant=job.tenant,
            job=job.id,
            revision=job.revision,
            trigger=Trigger.MANUAL,
            state=RunState.QUEUED if due_at <= near else RunState.SCHEDULED,
            due_at=due_at,
            fire_at=self.scheduled_for,
            queue=job.definition.queue,
            priority=chosen,
            handler=definition.handler,
            payload=self.payload,
            terms=terms_of(job.definition.options),
        )
        return replace(
            made,
            overlap=policy.number,
            start_by=None if deadline is None else due_at + deadline,
        )


async def run_now(desk: Desk, tenant: TenantId, job: JobId, wish: Wish | None = None) -> RunId:
    """A run of its own beside the schedule; also of a paused or completed job.

    Its id has nothing to do with any fire, so it never stands in for one. `scheduled_for` is told
    to the handler as the time it stands for. With `inherit` the overlap policy of the job decides
    about it as about a fire: it may wait, or be skipped at once.
    """
    wanted = wish or Wish()
    wanted.check()
    tail = int.from_bytes(desk.entropy(TAIL_BYTES), "big")
    run: RunId | None = None

    async def work(connection: Connection) -> tuple[RunId, list[Parcel]]:
        nonlocal run
        held = await grip(desk, connection, tenant, job)
        found, now = held.job, held.now
        if found.state is JobState.CANCELLED:
            raise IllegalTransition("a job that is cancelled cannot run any more")
        due_at = max(now, wanted.at or now)
        run = run or RunId(compose(to_ms(due_at), found.shard, tail))
        payload = await sealed_one(desk, connection, tenant, wanted.payload)
        fresh = replace(wanted, payload=payload).run(
            found, run, due_at=due_at, near=now + desk.margin
        )
        deferred = await _defer(desk, connection, held) if fresh.overlap else []
        return run, deferred + await _place(connection, fresh, held)

    made, parcels = await desk.transact(work, tenant=tenant)
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
        if parcel.held:
            desk.hints.replan(parcel.shard)  # its coordinator decides about it
    return made


async def _defer(desk: Desk, connection: Connection, held: Grip) -> list[Parcel]:
    """Fires with parcels further ahead than is published are decided upon when they are due.

    They got them with the job, or when it was planned late. Whoever is made by hand before them
    does not look so far, and need not give way to what is seconds away.
    """
    through, tenant = held.published_through, held.job.tenant
    low = floor_of(0 if through is None else to_ms(through) + 1)
    rows = await find_planned(connection, held.shard, held.job.id, low=low)
    ahead = [row.id for row in rows if row.state is RunState.QUEUED and row.due_at > held.now]
    parcels = await hold(connection, held.shard, tenant, ahead) if ahead else {}
    made = []
    for run, parcel in parcels.items():
        found = await locked_run(connection, tenant, run)
        if found.overlap and parcel.worker is None:
            tail = int.from_bytes(desk.entropy(TAIL_BYTES), "big")
            made.append(await repack(connection, found, parcel, tail))
            await change_run(connection, found, moved=True)
    return made


async def _place(connection: Connection, fresh: Run, held: Grip) -> list[Parcel]:
    if not await insert_manual(connection, fresh, options=None, now=held.now):
        return []
    if fresh.state is not RunState.QUEUED:
        return []
    placed = await place_runs(
        connection,
        fresh.shard,
        [fresh.waiting()],
        now=held.now,
        reach=held.published_through,
    )
    return placed.parcels


async def skip_next(
    desk: Desk, tenant: TenantId, job: JobId, *, count: int = 1, until: datetime | None = None
) -> list[datetime]:
    """The next `count` fires that would run, or all until an instant, will not; their times.

    A skipped fire is a run that is over before it began: with its row in place, no planner can
    make it again, whatever happens to the job meanwhile.
    """
    if not 1 <= count <= SKIP_MAX:
        raise Invalid(f"expected a count within 1-{SKIP_MAX}, got {count}", pointer="/count")
    skip = Skip(count=count if until is None else SKIP_MAX, until=until)

    async def work(connection: Connection) -> list[datetime]:
        return await skip.apply(connection, await grip(desk, connection, tenant, job))

    return await desk.transact(work, tenant=tenant)


@dataclass(slots=True, kw_only=True)
class Skip:
    """Chooses its fires once, so that a repetition does not skip others as well."""

    count: int
    until: datetime | None = None
    chosen: list[tuple[RunId, Fire]] = field(default_factory=list)

    async def apply(self, connection: Connection, held: Grip) -> list[datetime]:
        """End the chosen fires, planned or not."""
        job = held.job
        if not self.chosen:
            _check_known(job)
            await self._choose(connection, held)
        runs = [run for run, _ in self.chosen]
        await hold(connection, job.shard, job.tenant, runs)
        await end_runs(
            connection,
            job.shard,
            runs,
            state=RunState.SKIPPED,
            reason=SKIPPED_BY_USER,
            now=held.now,
        )
        rows = [(run, fire.effective, fire.nominal) for run, fire in self.chosen]
        await insert_skipped(
            connection, _template(job, held.now), rows, now=held.now, reason=SKIPPED_BY_USER
        )
        return [fire.nominal for _, fire in self.chosen]

    async def _choose(self, connection: Connection, held: Grip) -> None:
        job = held.job
        ahead = list(
            read_timetable(job.definition.schedule, job.id).fires(
                held.now, limit=self.count + LOOK_MAX
            )
        )
        if not ahead:
            return
        known = await find_fires(
            connection,
            job.shard,
            job.id,
            low=floor_of(to_ms(held.now)),
            first=held.now,
            last=ahead[-1].nominal,
        )
        over = {fire for fire, (_, state) in known.items() if state in FINAL}
        wanted = [fire for fire in ahead if fire.nominal not in over][: self.count]
        planned = {fire: run for fire, (run, _) in known.items()}
        self.chosen = [
            # A run that took the place of another one has not the id that its fire would give it.
            (planned.get(fire.nominal) or run_id(job.id, fire), fire)
            for fire in wanted
            if self.until is None or fire.nominal <= self.until
        ]


def _check_known(job: Job) -> None:
    if job.state is not JobState.ACTIVE or job.definition.has_fixed_delay:
        what = "has a fixed delay" if job.definition.has_fixed_delay else job.state.name.lower()
        raise IllegalTransition(
            f"expected an active job whose fires are known ahead, got one that is {what}"
        )


def _template(job: Job, now: datetime) -> Run:
    return new_run(
        run=RunId(compose(to_ms(now), shard_of(job.id), 0)),
        tenant=job.tenant,
        job=job.id,
        revision=job.revision,
        trigger=Trigger.SCHEDULE,
        state=RunState.SKIPPED,
        due_at=now,
        fire_at=None,
        queue=job.definition.queue,
        priority=job.definition.priority,
        handler=job.definition.handler,
        payload=None,
    )
