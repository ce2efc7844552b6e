"""Handing events out, in the store.

An event is handed out by putting deliveries into mailboxes, each under an id that is a function of
event and endpoint. So it may be done any number of times, by any number of dispatchers, and happens
once. What has been handed out is remembered by the time of arrival at the database, and never
closer to the present than a transaction may live: a row that is not visible yet is met by a later
look.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.ids import JobId, RunId, TenantId, shard_of
from betimes.domain.notice import delivery_id
from betimes.store.ask import execute, many, one
from betimes.store.database import Database
from betimes.store.jobs import from_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("routing")
SERVER = load("server")
SETTLED_AFTER = timedelta(seconds=10)
"""Longer than any transaction lives: nothing that arrived earlier can still appear."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How far the events of a tenant have been handed out."""

    tenant: TenantId
    through: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """An event that has arrived."""

    id: UUID
    type: str
    subject: str
    body: Mapping[str, Any]
    created_at: datetime
    arrived_at: datetime

    @property
    def place(self) -> tuple[datetime, UUID]:
        """Where it stands in the order of arrival."""
        return self.arrived_at, self.id


@dataclass(frozen=True, slots=True)
class Labels:
    """What jobs and runs carry that events do not tell."""

    tags: Mapping[str, str]
    notify: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Handout:
    """An event for an endpoint."""

    event: News
    endpoint: UUID


async def read_arrival_clock(connection: Connection) -> datetime:
    """The clock by which events arrive: the database's own, whatever a test states."""
    now: datetime = (await one(connection, SERVER["read_clock"]))["now"]
    return now


async def mailboxes_due_in(database: Database, *, now: datetime | None) -> float | None:
    """Seconds until something is due in a mailbox; None when nothing waits."""
    (row,) = await database.many(SQL["read_mailboxes_ahead"], lane=Lane.ENGINE, now=now)
    due_in: float | None = row["due_in"]
    return due_in


async def list_routings(database: Database, *, after: UUID, most: int) -> list[Routing]:
    """A page of tenants whose events are handed out."""
    rows = await database.many(SQL["list_routings"], lane=Lane.ENGINE, after=after, most=most)
    return [Routing(row["tenant_id"], row["routed_through"]) for row in rows]


async def find_news(
    database: Database, places: Sequence[tuple[TenantId, datetime]]
) -> set[TenantId]:
    """Those of the tenants that have an event after a time."""
    rows = await database.many(
        SQL["find_news"],
        lane=Lane.ENGINE,
        tenants=[tenant for tenant, _ in places],
        afters=[after for _, after in places],
    )
    return {row["tenant_id"] for row in rows}


async def read_news(
    database: Database, tenant: TenantId, *, after: tuple[datetime, UUID], most: int
) -> list[News]:
    """The next events of a tenant."""
    rows = await database.many(
        SQL["read_news"],
        lane=Lane.ENGINE,
        tenant=tenant,
        after_at=after[0],
        after_id=after[1],
        most=most,
    )
    return [
        News(
            id=row["id"],
            type=row["type"],
            subject=row["subject"],
            body=from_json(row["body"]),
            created_at=row["created_at"],
            arrived_at=row["arrived_at"],
        )
        for row in rows
    ]


async def hand_out(
    connection: Connection, tenant: TenantId, handouts: Sequence[Handout], *, now: datetime
) -> int:
    """Put events into mailboxes; how many were not there yet."""
    if not handouts:
        return 0
    # In one order, so that two dispatchers never wait for each other.
    ordered = sorted(handouts, key=lambda one: (one.endpoint, one.event.id))
    ids = [delivery_id(one.event.id, one.endpoint) for one in ordered]
    rows = await many(
        connection,
        SQL["insert_deliveries"],
        tenant=tenant,
        shards=[shard_of(one) for one in ids],
        ids=ids,
        endpoints=[one.endpoint for one in ordered],
        events=[one.event.id for one in ordered],
        types=[one.event.type for one in ordered],
        now=now,
    )
    fresh = {row["id"] for row in rows}
    woken = sorted({one.endpoint for one, id_ in zip(ordered, ids, strict=True) if id_ in fresh})
    if woken:
        await execute(
            connection,
            SQL["wake_mailboxes"],
            tenant=tenant,
            shards=[shard_of(one) for one in woken],
            endpoints=woken,
            now=now,
        )
    return len(fresh)


async def move_routing(connection: Connection, tenant: TenantId, through: datetime) -> None:
    """Remember how far it is."""
    await execute(connection, SQL["move_routing"], tenant=tenant, through=through)


async def read_labels(
    connection: Connection, tenant: TenantId, *, jobs: Sequence[JobId], runs: Sequence[RunId]
) -> dict[UUID, Labels]:
    """What jobs and runs carry, as far as they still exist."""
    found: dict[UUID, Labels] = {}
    for statement, ids in (("job_labels", list(jobs)), ("run_labels", list(runs))):
        if not ids:
            continue
        rows = await many(
            connection,
            SQL[statement],
            tenant=tenant,
            shards=[shard_of(one) for one in ids],
            ids=ids,
        )
        for row in rows:
            notify = [] if row["notify"] is None else _list(row["notify"])
            found[row["id"]] = Labels(dict(from_json(row["tags"])), notify)
    return found


def _list(text: str) -> Sequence[Mapping[str, Any]]:
    told: Mapping[str, Any] = from_json(f'{{"all": {text}}}')
    return list(told["all"])
