"""Calendars: sets of dates that schedules keep to or keep away from."""

from typing import Any

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.editing import check_preconditions
from betimes.api.etag import expected_revision, tag_of, unchanged
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged
from betimes.domain.errors import NotFound, Refused
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.ops import calendars as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.evaluating import beside
from betimes.schedule import Calendar, import_calendar
from betimes.wire import calendars as wire
from betimes.wire.base import Page, shown_instant
from betimes.wire.keys import PageOnly

YEARS = 10
"""How far the recurrences of an iCalendar text are written out."""
LENGTH_OF_A_DATE = 10


def shown_calendar(row: ops.CalendarRow, *, used_by: int | None = None) -> wire.Calendar:
    """A calendar as it is shown."""
    return wire.Calendar(
        name=row.name,
        dates=[text for text in row.dates if len(text) == LENGTH_OF_A_DATE],
        ranges=[text for text in row.dates if len(text) != LENGTH_OF_A_DATE],
        weekdays=list(row.weekdays),
        description=row.description,
        revision=row.revision,
        etag=tag_of(row.revision),
        created_at=shown_instant(row.created_at),
        updated_at=shown_instant(row.updated_at),
        used_by=used_by,
    )


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of calendars by name."""
    scope = ("calendars", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_calendars(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].name])
    return paged(call, page([shown_calendar(row) for row in found], cursor=cursor))


async def read(call: Call[NoQuery, None]) -> Reply:
    """One calendar, and how many jobs use it."""
    name = call.path["calendar"]
    try:
        row, users = await ops.get_calendar(call.service.desk, call.tenant, _named(name))
    except NotFound:
        raise missing("calendar", name) from None
    tag = tag_of(row.revision)
    if unchanged(call.request, tag):
        return Reply(status=304, headers={"ETag": tag})
    return Reply(value=shown_calendar(row, used_by=users), headers={"ETag": tag})


async def put(call: Call[wire.PutOptions, wire.PutCalendar]) -> Reply:
    """Make a calendar, or replace all its dates; jobs that use it are planned anew."""
    name = _named(call.path["calendar"])
    calendar = await beside(lambda: _dates(call, name))
    fresh = ops.new_calendar(
        call.service.desk, name, calendar=calendar, description=call.body.description
    )
    known = await ops.find_calendars(call.service.desk, call.tenant, [name])
    replaces = known[name].revision if name in known else None
    check_preconditions(call.request, replaces, force=call.query.force)

    async def verb(desk: Desk) -> ops.Stored:
        return await ops.put_calendar(
            desk, call.tenant, fresh, replaces=replaces, by=call.caller.key
        )

    return await perform(call, verb, lambda stored: _told(stored, replaces))


def _named(name: str) -> str:
    if "\x00" in name:
        raise missing("calendar", name)
    return name


def _dates(call: Call[Any, wire.PutCalendar], name: str) -> Calendar:
    body = call.body
    dates: list[object] = []
    for part in ("dates", "ranges"):
        for place, text in enumerate(getattr(body, part)):
            _pointed(f"/{part}/{place}", name, [text])
            dates.append(text)
    if body.ics is not None:
        year = call.service.now().year
        try:
            imported = import_calendar(name, body.ics, year - 1, year + YEARS)
        except Refused as refused:
            refused.pointer = "/ics"
            raise
        shown = imported.to_dict()["dates"]
        dates += shown if isinstance(shown, list) else []
    return Calendar.of(name, dates, body.weekdays)


def _pointed(pointer: str, name: str, dates: list[str]) -> None:
    try:
        Calendar.of(name, dates)
    except Refused as refused:
        refused.pointer = pointer
        raise


def _told(stored: ops.Stored, before: int | None) -> Told:
    shown = shown_calendar(stored.calendar)
    if stored.operation is not None:
        shown.operation_id = to_text("op", stored.operation.id)
    headers = {"ETag": shown.etag}
    if stored.created:
        headers["Location"] = f"/v1/calendars/{shown.name}"
    return Told(
        answer=answer(201 if stored.created else 200, shown, headers=headers),
        resource=f"calendar:{shown.name}",
        before=None if before is None else {"revision": before},
        after={"revision": shown.revision, "operation": shown.operation_id},
    )


async def delete(call: Call[NoQuery, None]) -> Reply:
    """Forget a calendar that no job uses."""
    name = _named(call.path["calendar"])
    known = await ops.find_calendars(call.service.desk, call.tenant, [name])
    if name not in known:
        raise missing("calendar", name)
    revision = expected_revision(call.request, known[name].revision)

    async def verb(desk: Desk) -> ops.CalendarRow:
        try:
            return await ops.delete_calendar(desk, call.tenant, name, expected_revision=revision)
        except NotFound:
            raise missing("calendar", name) from None

    return await perform(
        call,
        verb,
        lambda gone: Told(
            answer=answer(204),
            resource=f"calendar:{gone.name}",
            before={"revision": gone.revision},
        ),
    )


ONE = "/v1/calendars/{calendar}"
ROUTES = (
    Route(
        method="GET",
        path="/v1/calendars",
        name="calendars.list",
        says="List calendars by name.",
        handler=list_all,
        scope=Scope.JOBS_READ,
        query=PageOnly,
        answers={200: Page[wire.Calendar]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=ONE,
        name="calendars.get",
        says="Read one calendar.",
        handler=read,
        scope=Scope.JOBS_READ,
        answers={200: wire.Calendar, 304: None},
        headers=("ETag",),
    ),
    Route(
        method="PUT",
        path=ONE,
        name="calendars.put",
        says="Make or replace a calendar; jobs that use it are planned anew, as an operation.",
        handler=put,
        scope=Scope.JOBS_WRITE,
        query=wire.PutOptions,
        body=wire.PutCalendar,
        answers={200: wire.Calendar, 201: wire.Calendar},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag", "Location"),
        problems=("precondition_failed", "precondition_required", "invalid_schedule"),
        example={
            "dates": ["2026-12-25"],
            "ranges": ["2026-12-30/2027-01-02"],
            "weekdays": ["sat", "sun"],
            "description": "Days on which the office is closed.",
        },
    ),
    Route(
        method="DELETE",
        path=ONE,
        name="calendars.delete",
        says="Forget a calendar that no job uses.",
        handler=delete,
        scope=Scope.JOBS_WRITE,
        answers={204: None},
        load=Load.WRITE,
        problems=("precondition_failed", "dependency_in_use"),
    ),
)
