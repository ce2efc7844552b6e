"""Declared sets of jobs: make what is missing, change what differs, delete what is not wanted.

A set owns the jobs that carry its tags. It never touches a job of the same name that does not,
unless it is told to adopt it, and it deletes nothing that does not carry them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from betimes.domain.errors import AlreadyExists, Invalid, Refused, TooLarge
from betimes.domain.ids import TenantId
from betimes.domain.job import Definition, Job
from betimes.domain.states import JobState
from betimes.ops.contents import open_jobs
from betimes.ops.create import NewJob, create_jobs, shard_of_name
from betimes.ops.desk import Desk
from betimes.ops.end import delete_job
from betimes.ops.listing import JobFilter, find_every_job
from betimes.ops.update import update_job
from betimes.store.apply import read_named_jobs
from betimes.store.pool import Connection

JOBS_MAX = 1_000
ANCHOR = "anchor"
ITEMS = "/items/"
COMPARED = ("schedule", "handler", "target", "payload", "queue", "priority", "after_completion")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job of a set; `anchored` when its schedule says itself where it begins to count."""

    new: NewJob
    anchored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Which members of a definition change."""

    job: Job
    members: Sequence[str]


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a set asks for, compared with what is there."""

    create: list[NewJob] = field(default_factory=list)
    update: list[tuple[Job, Definition, Sequence[str]]] = field(default_factory=list)
    unchanged: list[Job] = field(default_factory=list)
    delete: list[Job] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What was done."""

    created: Sequence[Job]
    updated: Sequence[Difference]
    unchanged: Sequence[Job]
    deleted: Sequence[Job]


async def apply_jobs(
    desk: Desk,
    tenant: TenantId,
    wanted: Sequence[Wanted],
    *,
    tags: Mapping[str, str],
    prune: bool,
    adopt: bool,
    actor: str | None,
) -> Applied:
    """Bring the jobs of a set to what is declared, all or none; inside the desk's transaction."""
    _check(wanted, tags, prune=prune)
    found = await _named(desk, tenant, wanted)
    owned = await _owned(desk, tenant, tags) if prune else []
    plan = compare(wanted, found, owned, tags=tags, adopt=adopt)
    for job in plan.delete:
        await delete_job(desk, tenant, job.id, actor=actor)
    created = await _create(desk, tenant, plan.create, wanted)
    updated = []
    for job, definition, members in plan.update:
        edited = await update_job(
            desk, tenant, job.id, definition, expected_revision=job.revision, actor=actor
        )
        updated.append(Difference(job=edited, members=members))
    return Applied(created=created, updated=updated, unchanged=plan.unchanged, deleted=plan.delete)


async def _create(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob], wanted: Sequence[Wanted]
) -> list[Job]:
    """All that is missing at once; what is refused points at its place in the set."""
    if not new:
        return []
    try:
        return await create_jobs(desk, tenant, new)
    except Refused as refused:
        place, rest = 0, refused.pointer
        if len(new) > 1 and rest.startswith(ITEMS):
            number, _, rest = rest.removeprefix(ITEMS).partition("/")
            place, rest = int(number), f"/{rest}"
        declared = next(at for at, one in enumerate(wanted) if one.new is new[place])
        refused.pointer = f"/jobs/{declared}{rest}"
        raise


def _check(wanted: Sequence[Wanted], tags: Mapping[str, str], *, prune: bool) -> None:
    if prune and not tags:
        raise Invalid("expected a selector with tags to prune by, got none", pointer="/selector")
    names: set[tuple[str, str]] = set()
    for place, one in enumerate(wanted):
        name = one.new.name
        if name is None:
            raise Invalid("expected a name for every job of a set", pointer=f"/jobs/{place}/name")
        if (one.new.group, name) in names:
            raise Invalid(f"the job {name!r} is declared twice", pointer=f"/jobs/{place}/name")
        names.add((one.new.group, name))
        if not _carries(one.new.definition, tags):
            raise Invalid(
                f"the job {name!r} lacks the tags of its set", pointer=f"/jobs/{place}/tags"
            )


def compare(
    wanted: Sequence[Wanted],
    found: Mapping[tuple[str, str], Job],
    owned: Sequence[Job],
    *,
    tags: Mapping[str, str],
    adopt: bool,
) -> Plan:
    """What is to be done. Pure."""
    plan = Plan()
    for place, one in enumerate(wanted):
        job = found.get((one.new.group, one.new.name or ""))
        if job is None:
            plan.create.append(one.new)
            continue
        if not adopt and not _carries(job.definition, tags):
            raise AlreadyExists(
                f"the job {one.new.name!r} exists and belongs to no such set; adopt it, or rename",
                pointer=f"/jobs/{place}/name",
            )
        if job.state is JobState.CANCELLED:
            plan.delete.append(job)
            plan.create.append(one.new)
            continue
        definition = _anchored(one, job)
        members = differing(job.definition, definition)
        if members:
            plan.update.append((job, definition, members))
        else:
            plan.unchanged.append(job)
    declared = {(one.new.group, one.new.name) for one in wanted}
    plan.delete += [job for job in owned if (job.group, job.name) not in declared]
    return plan


def differing(old: Definition, new: Definition) -> list[str]:
    """The names of what differs; options by their own names."""
    found = [name for name in COMPARED if getattr(old, name) != getattr(new, name)]
    options = {**old.options, **new.options}
    return found + sorted(
        name for name in options if old.options.get(name) != new.options.get(name)
    )


def _anchored(wanted: Wanted, job: Job) -> Definition:
    """A period that only counts from its creation goes on counting from there."""
    definition, before = wanted.new.definition, job.definition.schedule
    schedule = definition.schedule
    same_kind = schedule.get("type") == before.get("type")
    if wanted.anchored or not same_kind or ANCHOR not in schedule or ANCHOR not in before:
        return definition
    return replace(definition, schedule={**schedule, ANCHOR: before[ANCHOR]}, recount=None)


def _carries(definition: Definition, tags: Mapping[str, str]) -> bool:
    carried: Mapping[str, Any] = definition.options.get("tags") or {}
    return all(carried.get(name) == value for name, value in tags.items())


async def _named(
    desk: Desk, tenant: TenantId, wanted: Sequence[Wanted]
) -> dict[tuple[str, str], Job]:
    places = [(one.new.group, one.new.name or "") for one in wanted]

    async def work(connection: Connection) -> dict[tuple[str, str], Job]:
        shards = [shard_of_name(desk.shards, tenant, *place) for place in places]
        jobs = await read_named_jobs(connection, tenant, places, shards=shards)
        jobs = await open_jobs(desk, connection, tenant, jobs)
        return {(job.group, job.name or ""): job for job in jobs}

    return await desk.transact(work, tenant=tenant)


async def _owned(desk: Desk, tenant: TenantId, tags: Mapping[str, str]) -> list[Job]:
    states = [state for state in JobState if state is not JobState.CANCELLED]
    chosen = JobFilter(states=states, tags=dict(tags))
    jobs = await find_every_job(desk, tenant, chosen, most=2 * JOBS_MAX + 1)
    if len(jobs) > 2 * JOBS_MAX:
        raise TooLarge(
            f"expected a selector of at most {2 * JOBS_MAX} jobs", code="batch_too_large"
        )
    return jobs
