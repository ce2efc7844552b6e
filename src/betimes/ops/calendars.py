"""Named calendars: keeping them, and bringing new revisions to the jobs that use them.

A job that names a calendar carries a copy of it, so that a schedule is complete in itself wherever
it is read. Changing a calendar begins an operation that edits every job with an older copy; the
edit forgets what was planned and plans anew. A job that was written while the calendar changed may
appear a little later, so the operation looks once more when every such transaction has ended.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.domain.errors import Conflict, Invalid, NotFound, Refused, TooLarge, VersionMismatch
from betimes.domain.ids import JobId, TenantId, to_text
from betimes.domain.job import Definition, Job
from betimes.ops.checks import check_name
from betimes.ops.desk import Desk
from betimes.ops.operating import Step, forward
from betimes.ops.operations import Operation, new_operation, start_operation
from betimes.ops.trail import SETTLED_AFTER
from betimes.ops.update import change_job
from betimes.schedule import Calendar
from betimes.store import calendars as rows
from betimes.store.calendars import CalendarRow
from betimes.store.pool import Connection

__all__ = [
    "APPLY",
    "CalendarRow",
    "Stored",
    "calendar_names",
    "delete_calendar",
    "find_calendars",
    "get_calendar",
    "list_calendars",
    "new_calendar",
    "put_calendar",
    "refreshed",
    "step_apply",
]

APPLY = "calendars.apply"
DATES_MAX = 2_000
"""Every job that names a calendar carries its dates."""
USERS_MAX = 1_000_000
DESCRIPTION_LENGTH_MAX = 2_000
BATCH = 1
FIRST = UUID(int=0)
DEPTH_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A calendar that was stored, and the operation that brings it to its jobs."""

    calendar: CalendarRow
    created: bool
    operation: Operation | None = None


def new_calendar(
    desk: Desk, name: str, *, calendar: Calendar, description: str = ""
) -> CalendarRow:
    """A calendar nobody has stored yet."""
    check_name(name)
    if len(description) > DESCRIPTION_LENGTH_MAX or "\x00" in description:
        raise Invalid(
            f"expected a description of at most {DESCRIPTION_LENGTH_MAX} characters without NUL",
            pointer="/description",
        )
    told = calendar.to_dict()
    dates, weekdays = told["dates"], told["weekdays"]
    if not isinstance(dates, list) or not isinstance(weekdays, list):
        raise Invalid("expected lists of dates and weekdays")
    if len(dates) > DATES_MAX:
        raise TooLarge(
            f"expected at most {DATES_MAX} dates and ranges, got {len(dates)}", pointer="/dates"
        )
    if not dates and not weekdays:
        raise Invalid("expected at least one date, range or weekday, got none", pointer="/dates")
    now = desk.clock.now()
    return CalendarRow(
        name=name,
        dates=tuple(dates),
        weekdays=tuple(weekdays),
        description=description,
        revision=1,
        created_at=now,
        updated_at=now,
    )


async def list_calendars(
    desk: Desk, tenant: TenantId, *, after: str, most: int
) -> list[CalendarRow]:
    """A page of calendars by name."""

    async def work(connection: Connection) -> list[CalendarRow]:
        return await rows.list_calendars(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def find_calendars(
    desk: Desk, tenant: TenantId, names: Iterable[str]
) -> dict[str, CalendarRow]:
    """The calendars with these names, as far as they exist."""
    wanted = sorted(set(names))

    async def work(connection: Connection) -> dict[str, CalendarRow]:
        return await rows.read_calendars(connection, tenant, wanted)

    return await desk.transact(work, tenant=tenant) if wanted else {}


async def get_calendar(desk: Desk, tenant: TenantId, name: str) -> tuple[CalendarRow, int]:
    """One calendar, and how many jobs use it."""

    async def work(connection: Connection) -> tuple[CalendarRow, int]:
        found = await _required(connection, tenant, name)
        return found, await rows.count_users(connection, tenant, name, most=USERS_MAX)

    return await desk.transact(work, tenant=tenant)


async def put_calendar(
    desk: Desk,
    tenant: TenantId,
    calendar: CalendarRow,
    *,
    replaces: int | None,
    by: str | None = None,
) -> Stored:
    """Make a calendar, or replace the revision that was read.

    Jobs that use it follow in an operation, begun in the same transaction.
    """
    operation = new_operation(
        desk, tenant, APPLY, {"name": calendar.name, "revision": (replaces or 0) + 1}, by=by
    )

    async def work(connection: Connection) -> Stored:
        revision = await rows.put_calendar(connection, tenant, calendar, replaces=replaces)
        if revision is None and not await _is_ours(connection, tenant, calendar, replaces):
            raise VersionMismatch("the calendar was changed meanwhile; read it again")
        found = await _required(connection, tenant, calendar.name)
        users = await rows.count_users(connection, tenant, calendar.name, most=USERS_MAX)
        if not users:
            return Stored(calendar=found, created=replaces is None)
        begun = await start_operation(
            desk.inside(connection, desk.hints), replace(operation, total=users)
        )
        return Stored(calendar=found, created=replaces is None, operation=begun)

    return await desk.transact(work, tenant=tenant)


async def _is_ours(
    connection: Connection, tenant: TenantId, calendar: CalendarRow, replaces: int | None
) -> bool:
    """Our own commit, whose reply was lost."""
    found = (await rows.read_calendars(connection, tenant, [calendar.name])).get(calendar.name)
    same = found is not None and found.updated_at == calendar.updated_at
    return same and found is not None and found.revision == (replaces or 0) + 1


async def delete_calendar(
    desk: Desk, tenant: TenantId, name: str, *, expected_revision: int | None = None
) -> CalendarRow:
    """Forget a calendar that no job uses."""

    async def work(connection: Connection) -> CalendarRow:
        found = await _required(connection, tenant, name)
        if expected_revision is not None and found.revision != expected_revision:
            raise VersionMismatch(
                f"expected revision {expected_revision} of the calendar, got {found.revision}"
            )
        users = await rows.count_users(connection, tenant, name, most=USERS_MAX)
        if users:
            raise Conflict(f"{users} jobs use the calendar {name!r}", code="dependency_in_use")
        await rows.delete_calendar(connection, tenant, name)
        return found

    return await desk.transact(work, tenant=tenant)


async def _required(connection: Connection, tenant: TenantId, name: str) -> CalendarRow:
    found = (await rows.read_calendars(connection, tenant, [name])).get(name)
    if found is None:
        raise NotFound(f"there is no calendar {name[:200]!r}")
    return found


def calendar_names(schedule: object, depth: int = 0) -> set[str]:
    """The calendars a schedule names, also inside unions."""
    if not isinstance(schedule, Mapping) or depth > DEPTH_MAX:
        return set()
    found: set[str] = set()
    for entry in _entries(schedule):
        if isinstance(entry, str) and "\x00" not in entry:
            found.add(entry)
    members = schedule.get("of")
    for member in members if isinstance(members, list | tuple) else ():
        found |= calendar_names(member, depth + 1)
    return found


def _entries(schedule: Mapping[str, Any]) -> Iterable[object]:
    calendars = schedule.get("calendars")
    if isinstance(calendars, Mapping):
        for part in ("include", "exclude"):
            entries = calendars.get(part)
            if isinstance(entries, list | tuple):
                yield from entries


def refreshed(definition: Definition, known: Mapping[str, CalendarRow]) -> Definition:
    """The definition with fresh copies of these calendars, wherever it carries one."""
    carried = dict(definition.options.get("calendars") or {})
    fresh = {name: known[name] for name in carried if name in known}
    if not fresh:
        return definition
    revisions = {name: row.revision for name, row in fresh.items()}
    return replace(
        definition,
        schedule=_with_copies(definition.schedule, fresh),
        options={**definition.options, "calendars": carried | revisions},
    )


def _with_copies(schedule: Mapping[str, Any], fresh: Mapping[str, CalendarRow]) -> dict[str, Any]:
    found = dict(schedule)
    calendars = found.get("calendars")
    if isinstance(calendars, Mapping):
        found["calendars"] = {
            part: [_copy(entry, fresh) for entry in value] if isinstance(value, list) else value
            for part, value in calendars.items()
        }
    if isinstance(found.get("of"), list):
        found["of"] = [_with_copies(member, fresh) for member in found["of"]]
    return found


def _copy(entry: Any, fresh: Mapping[str, CalendarRow]) -> Any:
    if isinstance(entry, Mapping) and entry.get("name") in fresh:
        return copy_of(fresh[str(entry["name"])]).to_dict()
    return entry


def copy_of(row: CalendarRow) -> Calendar:
    """A stored calendar as schedules take it."""
    return Calendar.of(row.name, row.dates, row.weekdays)


async def step_apply(desk: Desk, operation: Operation) -> Step:
    """The next job with an old copy; a second look when nobody can be late any more."""
    second, after = _place(operation)
    name = str(operation.request["name"])
    calendar = (await find_calendars(desk, operation.tenant, [name])).get(name)
    if calendar is None or calendar.revision != operation.request["revision"]:
        return Step(operation=operation, wait=None)  # gone, or the next one does it
    stale = await _stale(desk, operation.tenant, calendar, after=after)
    if not stale:
        left = operation.created_at + SETTLED_AFTER - desk.clock.now()
        if second:
            return Step(operation=operation, wait=None)
        moved = replace(operation, cursor=f"2:{FIRST}")
        if left > timedelta(0):
            return Step(operation=operation, wait=left)
        return Step(operation=moved)
    return Step(operation=await _apply(desk, operation, calendar, stale[0], second=second))


def _place(operation: Operation) -> tuple[bool, UUID]:
    look, _, after = (operation.cursor or f"1:{FIRST}").partition(":")
    return look == "2", UUID(after)


async def _stale(
    desk: Desk, tenant: TenantId, calendar: CalendarRow, *, after: UUID
) -> list[JobId]:
    async def work(connection: Connection) -> list[JobId]:
        return await rows.stale_users(
            connection, tenant, calendar.name, revision=calendar.revision, after=after, most=BATCH
        )

    return await desk.transact(work, tenant=tenant)


async def _apply(
    desk: Desk, operation: Operation, calendar: CalendarRow, job: JobId, *, second: bool
) -> Operation:
    async def edit(inner: Desk) -> None:
        async def change(found: Job) -> Definition:
            return refreshed(found.definition, {calendar.name: calendar})

        actor = to_text("op", operation.id)
        await change_job(inner, operation.tenant, job, change, actor=actor)

    async def pass_by(_: Desk) -> None:
        """A job that would never fire again keeps the copy it has."""

    place = f"{2 if second else 1}:{job}"
    try:
        return await forward(
            desk, _counted(operation, "changed", place), edit, tenant=operation.tenant
        )
    except Refused:
        return await forward(
            desk, _counted(operation, "refused", place), pass_by, tenant=operation.tenant
        )


def _counted(operation: Operation, what: str, place: str) -> Operation:
    result = {"changed": 0, "refused": 0, **operation.result}
    result[what] += 1
    return replace(operation, done=operation.done + 1, cursor=place, result=result)
