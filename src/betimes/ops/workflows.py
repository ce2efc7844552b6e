"""Definitions of workflows: every version is kept as it was given, and never changes.

Beside what was given lies what the runs of its nodes are like: targets, retries and timeouts in the
form in which any run stores them, so that a turn of a workflow run has nothing left to check.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from betimes.domain.errors import Bug, Conflict, Invalid, NotFound, TooLarge, VersionMismatch
from betimes.domain.ids import (
    TAIL_BYTES,
    JobId,
    ShardId,
    TenantId,
    random_ids,
    shard_of_key,
    to_ms,
    to_text,
)
from betimes.domain.kept import Kept
from betimes.domain.parcel import PRIORITY_DEFAULT
from betimes.domain.run import QUEUE_DEFAULT, NewRun
from betimes.ops.checks import check_name
from betimes.ops.contents import open_bytes, sealed_one
from betimes.ops.desk import Desk
from betimes.ops.enqueue import check_new_run
from betimes.ops.schemas import compiled
from betimes.rhythm import aside_if_large
from betimes.schedule.duration import read_duration
from betimes.store import workflows as rows
from betimes.store.pool import Connection
from betimes.store.workflows import WorkflowRow
from betimes.workflow.graph import Graph, read_graph

DEFINITION_BYTES_MAX = 1 << 20
PLANS_MAX = 500
PLANS_BYTES_MAX = 16 << 20
"""A plan takes some ten times the room of its definition."""
PAGE_BYTES_MAX = 2 << 20
"""So much of definitions is shown in one page, and one more."""
DURATION_MAX = timedelta(days=366 * 100)
VERSION_CONFLICT = "workflow_version_conflict"
IN_USE = "dependency_in_use"


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the runs of a node are like, but for their payloads."""

    handler: str | None = None
    target: dict[str, Any] = msgspec.field(default_factory=dict)
    queue: str = QUEUE_DEFAULT
    priority: int = PRIORITY_DEFAULT
    options: dict[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, new: NewRun) -> "Work":
        """What an ad-hoc run is like."""
        return cls(
            handler=new.handler,
            target=dict(new.target),
            queue=new.queue,
            priority=new.priority,
            options=dict(new.options),
        )

    def run(self, payload: bytes | None, **more: Any) -> NewRun:
        """A run of this kind; `more` are further options."""
        return NewRun(
            handler=self.handler,
            target=self.target,
            payload=payload,
            queue=self.queue,
            priority=self.priority,
            options={**self.options, **more} if more else self.options,
        )


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as it is stored."""

    definition: dict[str, Any]
    work: dict[str, Work]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A definition as the engine takes it: read, checked, complete."""

    graph: Graph
    work: Mapping[str, Work]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """One version of a workflow, open."""

    name: str
    version: int
    definition: Mapping[str, Any]
    content: bytes
    """What is stored of it, open."""
    digest: bytes
    created_at: datetime
    created_by: str | None
    size: int
    """What it takes where it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A definition that was checked, as it is stored."""

    definition: Mapping[str, Any]
    content: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """What is stored under a name now, and whether that is new."""

    workflow: Workflow
    created: bool


def read_span(source: object, pointer: str) -> timedelta:
    """A duration of elapsed time, as users write it."""
    if not isinstance(source, str | int | float) or isinstance(source, bool):
        raise Invalid(f"expected a duration such as PT15M, got {source!r}", pointer=pointer)
    try:
        span = timedelta(microseconds=read_duration(source, pointer).elapsed(pointer))
    except (OverflowError, ValueError):
        raise Invalid("expected a duration such as PT15M", pointer=pointer) from None
    except Invalid as refused:
        raise Invalid(refused.sentence, pointer=pointer) from None
    if span > DURATION_MAX:
        raise Invalid("expected a duration of at most 100 years", pointer=pointer)
    return span


def check_definition(definition: Mapping[str, Any]) -> Graph:
    """Everything that can be said about a graph without asking anybody."""
    graph = read_graph(definition, duration=read_span)
    if graph.input_schema is not None:
        try:
            compiled(msgspec.json.encode(graph.input_schema, order="sorted").decode())
        except ValueError as error:
            reason = str(error).partition("\n")[0]
            raise Invalid(
                f"expected a JSON Schema: {reason[:500]}", pointer="/input_schema"
            ) from error
    return graph


def read_plan(content: bytes) -> Plan:
    """The plan that a stored definition stands for."""
    written = msgspec.json.decode(content, type=Written)
    return Plan(graph=read_graph(written.definition, duration=read_span), work=written.work)


_PLANS: Kept[bytes, Plan] = Kept(PLANS_BYTES_MAX, entries=PLANS_MAX)
"""Plans that were read lately, so many and of so many bytes of definitions together."""


async def plan_of(content: bytes) -> Plan:
    """The plan that a stored definition stands for; equal ones are read once, large ones aside."""
    plan = _PLANS.get(content)
    if plan is None:
        plan = await aside_if_large(len(content), read_plan, content)
        _PLANS.put(content, plan, len(content))
    return plan


def shard_of_workflow(desk: Desk, tenant: TenantId, name: str) -> ShardId:
    """Where the versions of a name lie."""
    return shard_of_key(desk.shards, str(tenant), "workflow", name)


def prepare(definition: Mapping[str, Any], works: Callable[[], Mapping[str, Work]]) -> Prepared:
    """Check a definition, then what its runs are like, and write it down.

    Thinks longer the larger it is: large ones are prepared aside.
    """
    graph = check_definition(definition)
    work = works()
    if set(work) != set(graph.nodes):
        raise Bug("expected what the runs are like for every node, and nothing else")
    for one in work.values():
        check_new_run(one.run(None))
    content = msgspec.json.encode(
        Written(definition=dict(definition), work=dict(work)), order="sorted"
    )
    if len(content) > DEFINITION_BYTES_MAX:
        raise TooLarge(
            f"expected a definition of at most {DEFINITION_BYTES_MAX} bytes, got {len(content)}"
        )
    return Prepared(definition=definition, content=content, digest=sha256(content).digest())


async def put_workflow(
    desk: Desk,
    tenant: TenantId,
    name: str,
    prepared: Prepared,
    *,
    replaces: int | None = None,
    by: str | None = None,
) -> Put:
    """Keep a definition as the next version, unless it is what the newest one says already.

    With `replaces`, only over that version; 0 means that there is none.
    """
    check_name(name)
    content, digest = prepared.content, prepared.digest
    shard = shard_of_workflow(desk, tenant, name)
    tail = desk.entropy(TAIL_BYTES)

    async def put(connection: Connection) -> Put:
        now = await desk.now(connection)
        newest = await rows.lock_newest(connection, shard, tenant, name)
        present = 0 if newest is None or newest.is_deleted else newest.version
        if present and newest is not None and newest.digest == digest:
            row = await rows.read_workflow(connection, shard, tenant, name, present)
            if row is not None:
                return Put(_opened(row, content, prepared.definition), created=False)
        if replaces is not None and replaces != present:
            raise VersionMismatch(
                f"expected version {replaces or 'none'} of {name!r} to be the newest, "
                f"got {present or 'none'}"
            )
        (identifier,) = random_ids(to_ms(now), shard, tail)
        stored = await sealed_one(desk, connection, tenant, content)
        fresh = WorkflowRow(
            name=name,
            version=1 if newest is None else newest.version + 1,
            id=identifier,
            definition=stored or b"",
            digest=digest,
            created_at=now,
            created_by=by,
        )
        if not await rows.insert_workflow(connection, shard, tenant, fresh):
            raise VersionMismatch(
                f"somebody else has just made version {fresh.version} of {name!r}",
                code=VERSION_CONFLICT,
            )
        return Put(_opened(fresh, content, prepared.definition), created=True)

    return await desk.transact(put, tenant=tenant)


async def get_workflow(
    desk: Desk, tenant: TenantId, name: str, version: int | None = None
) -> Workflow:
    """One version, or the newest."""
    shard = shard_of_workflow(desk, tenant, name)

    async def read(connection: Connection) -> Workflow:
        row = await rows.read_workflow(connection, shard, tenant, name, version)
        if row is None:
            raise no_such_workflow(name, version)
        return (await _open(desk, connection, tenant, [row]))[0]

    return await desk.transact(read, tenant=tenant)


async def list_workflows(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[Workflow]:
    """A page by name, each in its newest version."""

    async def read(connection: Connection) -> list[Workflow]:
        found = await rows.list_workflows(
            connection, tenant, after=after, most=most, bytes_max=PAGE_BYTES_MAX
        )
        return await _open(desk, connection, tenant, found)

    return await desk.transact(read, tenant=tenant)


async def list_versions(
    desk: Desk, tenant: TenantId, name: str, *, before: int, most: int
) -> list[Workflow]:
    """A page of versions, newest first."""
    shard = shard_of_workflow(desk, tenant, name)

    async def read(connection: Connection) -> list[Workflow]:
        found = await rows.list_versions(
            connection, shard, tenant, name, before=before, most=most, bytes_max=PAGE_BYTES_MAX
        )
        return await _open(desk, connection, tenant, found)

    return await desk.transact(read, tenant=tenant)


async def delete_workflow(
    desk: Desk, tenant: TenantId, name: str, *, expected_version: int | None = None
) -> int:
    """Forget a workflow that no job starts; its newest version. Runs under way go on."""
    shard = shard_of_workflow(desk, tenant, name)

    async def delete(connection: Connection) -> int:
        newest = await rows.lock_newest(connection, shard, tenant, name)
        if newest is None or newest.is_deleted:
            raise no_such_workflow(name, None)
        if expected_version is not None and newest.version != expected_version:
            raise VersionMismatch(
                f"expected version {expected_version} of {name!r}, got {newest.version}"
            )
        users = await rows.jobs_with_workflow(connection, tenant, name, most=1)
        _check_unused(name, users)
        now = await desk.now(connection)
        await rows.delete_workflow(connection, shard, tenant, name, now=now)
        return newest.version

    return await desk.transact(delete, tenant=tenant)


def is_cut(found: Sequence[Workflow], limit: int) -> bool:
    """Whether there may be more behind a page: it is full, by number or by size."""
    return len(found) == limit or sum(one.size for one in found) >= PAGE_BYTES_MAX


def no_such_workflow(name: str, version: int | None) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    which = "" if version is None else f"version {version} of "
    return NotFound(f"there is no {which}workflow {name!r}")


def _check_unused(name: str, users: Sequence[JobId]) -> None:
    if users:
        job = to_text("job", users[0])
        raise Conflict(f"expected no job that starts {name!r}, got {job}", code=IN_USE)


async def _open(
    desk: Desk, connection: Connection, tenant: TenantId, found: Sequence[WorkflowRow]
) -> list[Workflow]:
    contents = await open_bytes(desk, connection, tenant, [row.definition for row in found])
    return [_opened(row, content or b"") for row, content in zip(found, contents, strict=True)]


def _opened(
    row: WorkflowRow, content: bytes, definition: Mapping[str, Any] | None = None
) -> Workflow:
    if definition is None:
        definition = msgspec.json.decode(content, type=Written).definition
    return Workflow(
        name=row.name,
        version=row.version,
        definition=definition,
        size=len(row.definition),
        content=content,
        digest=row.digest,
        created_at=row.created_at,
        created_by=row.created_by,
    )
