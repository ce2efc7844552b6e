"""Creating jobs, one and many: the definition and what is nearly due, in one transaction."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from betimes.domain.dedupe import Dedupe
from betimes.domain.errors import AlreadyExists, Bug, Refused, TooLarge
from betimes.domain.ids import JobId, ShardId, TenantId, random_ids, shard_of_key, to_ms
from betimes.domain.job import GROUP_DEFAULT, Definition, Job
from betimes.domain.parcel import Parcel
from betimes.domain.states import JobState, Trigger
from betimes.domain.terms import most_of, terms_of
from betimes.ops.ahead import with_fires
from betimes.ops.checks import (
    check_name,
    check_payload,
    check_priority,
    check_queue,
    check_reason,
    check_terms,
    check_work,
    encode_options,
)
from betimes.ops.contents import sealed
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.evaluating import Evaluations
from betimes.ops.gap import JOB_PAUSED, open_gap
from betimes.ops.outlook import Outlook, look_ahead, require_a_future, runs_of
from betimes.ops.parcelling import parcel_runs
from betimes.ops.timetable import counted, shared_timetable
from betimes.schedule import Schedule
from betimes.store.admit import declare
from betimes.store.jobs import insert_jobs, read_job
from betimes.store.occurrences import insert_planned
from betimes.store.pool import Connection

BATCH_JOBS_MAX = 1_000
SOON = timedelta(minutes=1)
"""A later fire is found in good time without a hint, which has every shard of a node looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job as a caller asks for it."""

    definition: Definition
    name: str | None = None
    group: str = GROUP_DEFAULT
    created_by: str | None = None
    dedupe: Dedupe | None = None
    pause: str | None = None
    """Why it begins paused; None when it does not."""


async def create_job(
    desk: Desk, tenant: TenantId, new: NewJob, *, shard: ShardId | None = None
) -> Job:
    """One job; `shard` places an unnamed one beside the key that guards its creation."""
    return (await create_jobs(desk, tenant, [new], shard=shard))[0]


async def create_jobs(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob], *, shard: ShardId | None = None
) -> list[Job]:
    """All of them or none, in one transaction, in the order given."""
    if any(one.dedupe is not None for one in new):
        raise Bug("jobs with a dedupe key are created by ops.dedupe")
    creation = Creation(desk, tenant, new, shard=shard)
    parcels = await desk.transact(creation.place, tenant=tenant)
    announce(desk, creation.jobs, parcels)
    return creation.jobs


def announce(desk: Desk, jobs: Sequence[Job], parcels: Sequence[Parcel]) -> None:
    """Hints about what is due and what is to be planned soon; after the commit."""
    for parcel in parcels:
        desk.hints.hint(*parcel.hint)
    held = {parcel.shard for parcel in parcels if parcel.held}
    for shard in held | {job.shard for job in jobs if _fires_soon(job)}:
        desk.hints.replan(shard)


def _fires_soon(job: Job) -> bool:
    """Whether the planner should look before its next turn, which it takes every second or so."""
    return job.next_fire_at is not None and job.next_fire_at <= job.created_at + SOON


def check_definition(definition: Definition) -> None:
    """Everything about a definition except its schedule, which reading checks."""
    check_work(definition.handler, definition.target)
    check_queue(definition.queue)
    check_priority(definition.priority)
    check_payload(definition.payload)
    check_terms(definition.options)
    encode_options(definition.options, definition.target)


def shard_of_name(shards: int, tenant: TenantId, group: str, name: str) -> ShardId:
    """Where a named job lives: a function of its name, so that one index keeps names unique."""
    return shard_of_key(shards, str(tenant), group, name)


class Creation:
    """Jobs that one tenant asked for. Made once; `place` may run again with the same ids."""

    def __init__(
        self, desk: Desk, tenant: TenantId, new: Sequence[NewJob], *, shard: ShardId | None
    ) -> None:
        if len(new) > BATCH_JOBS_MAX:
            raise TooLarge(
                f"expected at most {BATCH_JOBS_MAX} jobs in a batch, got {len(new)}",
                code="batch_too_large",
            )
        self._desk = desk
        self._tenant = tenant
        self._asked = new
        self._new = new
        for place, one in enumerate(new):
            with pointing(place, alone=len(new) == 1):
                check_new_job(one)
        unnamed = desk.next_shard() if shard is None else shard
        self._shards = [
            unnamed if one.name is None else shard_of_name(desk.shards, tenant, one.group, one.name)
            for one in new
        ]
        self._tails = desk.entropy(len(new) * TAIL_BYTES)
        self._ids: list[JobId] = []
        self._timetables: list[Schedule] = []
        self.jobs: list[Job] = []

    async def place(self, connection: Connection) -> list[Parcel]:
        """Insert jobs, and runs and parcels of those that fire within the margin."""
        now = await self._desk.now(connection)
        await self._count(now)
        await self._prepare(now)
        near = now + self._desk.margin
        outlooks = await self._outlooks(now, near)
        self.jobs = [
            _job(one, job, self._tenant, outlook, now, tzdata=self._desk.tzdata)
            for one, job, outlook in zip(
                await self._sealed(connection), self._ids, outlooks, strict=True
            )
        ]
        by_shard: dict[ShardId, list[int]] = {}
        for place in self._in_order():
            by_shard.setdefault(self.jobs[place].shard, []).append(place)
        parcels: list[Parcel] = []
        for places in by_shard.values():
            parcels += await self._place_in_shard(connection, places, outlooks, near=near)
        self.jobs = [
            with_fires(job, outlook.near, now=now)
            for job, outlook in zip(self.jobs, outlooks, strict=True)
        ]
        await declare_gates(
            connection, self._tenant, (one.definition for one in self._new), now=now
        )
        return parcels

    def _in_order(self) -> list[int]:
        """By shard and name: two who want the same names do not wait for each other crosswise."""
        wanted = [(job.shard, job.group, job.name or "") for job in self.jobs]
        return sorted(range(len(wanted)), key=wanted.__getitem__)

    async def _sealed(self, connection: Connection) -> list[NewJob]:
        payloads = [one.definition.payload for one in self._new]
        kept = await sealed(self._desk, connection, self._tenant, payloads)
        return [
            one
            if payload is one.definition.payload
            else replace(one, definition=replace(one.definition, payload=payload))
            for one, payload in zip(self._new, kept, strict=True)
        ]

    async def _place_in_shard(
        self,
        connection: Connection,
        places: Sequence[int],
        outlooks: Sequence[Outlook],
        *,
        near: datetime,
    ) -> list[Parcel]:
        jobs = [self.jobs[place] for place in places]
        made = await insert_jobs(connection, jobs)
        for place in places:
            if self.jobs[place].id not in made:
                with pointing(place, alone=len(self._new) == 1):
                    self.jobs[place] = await self._recognise(connection, self.jobs[place])
        runs = [
            run
            for place in places
            if (job := self.jobs[place]).id in made
            for run in runs_of(
                outlooks[place].near,
                job.definition,
                job=job.id,
                tenant=job.tenant,
                revision=job.revision,
                near=near,
            )
        ]
        inserted = await insert_planned(connection, jobs[0].shard, runs, trigger=Trigger.SCHEDULE)
        fresh = [run for run in runs if run.id in inserted]
        return await parcel_runs(connection, jobs[0].shard, fresh, now=near - self._desk.margin)

    async def _recognise(self, connection: Connection, job: Job) -> Job:
        """Our own commit whose reply was lost is fine; a name that somebody else has is not."""
        stored = await read_job(connection, job.id)
        if stored is None:
            raise AlreadyExists(
                f"a job with the name {job.name!r} exists already in the group {job.group!r}",
                pointer="/name",
            )
        return stored

    async def _count(self, now: datetime) -> None:
        """Let delays begin now, each time: what has no row yet has no time yet either."""
        if all(one.definition.recount is None for one in self._asked):
            return
        evaluations = Evaluations()
        self._timetables = []
        self._new = [
            replace(one, definition=await counted(one.definition, now, evaluations))
            for one in self._asked
        ]

    async def _prepare(self, now: datetime) -> None:
        """Ids and timetables, the first time; an id carries its creation and must not change."""
        if self._timetables:
            return
        evaluations = Evaluations()
        timetables: list[Schedule] = []
        ids = self._ids or [
            JobId(next(random_ids(to_ms(now), shard, self._tails[at : at + TAIL_BYTES])))
            for shard, at in zip(self._shards, range(0, len(self._tails), TAIL_BYTES), strict=True)
        ]
        for place, (one, job) in enumerate(zip(self._new, ids, strict=True)):
            with pointing(place, alone=len(self._new) == 1):
                read = partial(shared_timetable, self._desk.schedules, one.definition.schedule, job)
                timetables.append(await evaluations.run(read))
        self._timetables, self._ids = timetables, ids

    async def _outlooks(self, now: datetime, near: datetime) -> list[Outlook]:
        outlooks, known = list[Outlook](), dict[int, Outlook]()
        evaluations = Evaluations()
        for place, (one, timetable) in enumerate(zip(self._new, self._timetables, strict=True)):
            outlook = known.get(id(timetable))
            if outlook is None:
                with pointing(place, alone=len(self._new) == 1):
                    look = partial(look_ahead, timetable, one.definition, after=now, near=near)
                    outlook = await evaluations.run(look)
                known[id(timetable)] = outlook
            with pointing(place, alone=len(self._new) == 1):
                require_a_future(outlook, one.definition)
            outlooks.append(outlook if one.pause is None else outlook.set_aside())
        return outlooks


async def declare_gates(
    connection: Connection, tenant: TenantId, definitions: Iterable[Definition], *, now: datetime
) -> None:
    """Write down how many runs of their concurrency keys may be in flight; the last word counts."""
    gates = {
        gate: most_of(one.options)
        for one in definitions
        if (gate := terms_of(one.options).gate) is not None
    }
    await declare(connection, tenant, gates, now=now)


@contextmanager
def pointing(place: int, *, alone: bool) -> Iterator[None]:
    """Let what is refused in a batch point at its item."""
    try:
        yield
    except Refused as refused:
        if not alone:
            refused.pointer = f"/items/{place}{refused.pointer}"
        raise


def check_new_job(new: NewJob) -> None:
    """Everything about a new job except its schedule, which reading checks."""
    if new.name is not None:
        check_name(new.name)
    check_name(new.group, pointer="/group")
    if new.pause is not None:
        check_reason(new.pause, pointer="/pause_reason")
    check_definition(new.definition)


def _job(
    new: NewJob, job: JobId, tenant: TenantId, outlook: Outlook, now: datetime, *, tzdata: str
) -> Job:
    made = _made(new, job, tenant, outlook, now, tzdata=tzdata)
    if new.pause is None:
        return made
    # As if it had been paused the moment it was made: resuming begins with its first fire.
    since = open_gap(made, (), now)
    why = {"code": JOB_PAUSED, "reason": new.pause, "by": new.created_by, **since}
    return replace(made, state=JobState.PAUSED, state_reason=why)


def _made(
    new: NewJob, job: JobId, tenant: TenantId, outlook: Outlook, now: datetime, *, tzdata: str
) -> Job:
    return Job(
        id=job,
        tenant=tenant,
        group=new.group,
        name=new.name,
        definition=new.definition,
        state=outlook.state,
        revision=1,
        fires=len(outlook.near),
        next_fire_at=outlook.next_fire_at,
        paused_until=None,
        created_at=now,
        updated_at=now,
        tzdata=tzdata,
        created_by=new.created_by,
    )
