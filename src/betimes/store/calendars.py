"""Named calendars in the store: rows in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from betimes.domain.ids import JobId, TenantId
from betimes.store.ask import many, maybe, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("calendars")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarRow:
    """A calendar as it is kept: dates and ranges as texts, merged and in order."""

    name: str
    dates: tuple[str, ...]
    weekdays: tuple[str, ...]
    description: str
    revision: int
    created_at: datetime
    updated_at: datetime


async def read_calendars(
    connection: Connection, tenant: TenantId, names: Sequence[str]
) -> dict[str, CalendarRow]:
    """Calendars by name; those that do not exist are missing."""
    rows = await many(connection, SQL["read_calendars"], tenant=tenant, names=list(names))
    return {row["name"]: calendar_of(row) for row in rows}


async def list_calendars(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[CalendarRow]:
    """A page of calendars."""
    rows = await many(connection, SQL["list_calendars"], tenant=tenant, after=after, most=most)
    return [calendar_of(row) for row in rows]


async def put_calendar(
    connection: Connection, tenant: TenantId, calendar: CalendarRow, *, replaces: int | None
) -> int | None:
    """Store a calendar over a revision, or as a new one; its revision, or None on a conflict."""
    given = {
        "tenant": tenant,
        "name": calendar.name,
        "dates": list(calendar.dates),
        "weekdays": list(calendar.weekdays),
        "description": calendar.description,
        "now": calendar.updated_at,
    }
    if replaces is None:
        row = await maybe(connection, SQL["insert_calendar"], **given)
    else:
        row = await maybe(connection, SQL["change_calendar"], **given, revision=replaces)
    return None if row is None else int(row["revision"])


async def delete_calendar(connection: Connection, tenant: TenantId, name: str) -> bool:
    """Forget a calendar; False when there is none."""
    return await maybe(connection, SQL["delete_calendar"], tenant=tenant, name=name) is not None


async def count_users(connection: Connection, tenant: TenantId, name: str, *, most: int) -> int:
    """How many jobs carry a copy, up to a bound."""
    row = await one(connection, SQL["count_calendar_users"], tenant=tenant, name=name, most=most)
    return int(row["jobs"])


async def stale_users(
    connection: Connection,
    tenant: TenantId,
    name: str,
    *,
    revision: int,
    after: UUID,
    most: int,
) -> list[JobId]:
    """Jobs that carry another revision than this one."""
    rows = await many(
        connection,
        SQL["stale_calendar_users"],
        tenant=tenant,
        name=name,
        revision=revision,
        after=after,
        most=most,
    )
    return [row["id"] for row in rows]


def calendar_of(row: asyncpg.Record) -> CalendarRow:
    """A row as a calendar."""
    return CalendarRow(
        name=row["name"],
        dates=tuple(row["dates"]),
        weekdays=tuple(row["weekdays"]),
        description=row["description"],
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
