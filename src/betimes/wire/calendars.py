"""Calendars as they are asked for and shown."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked, Instant, Shown

DateText = Annotated[
    str,
    msgspec.Meta(max_length=10, description="2026-12-25", extra_json_schema={"format": "date"}),
]
RangeText = Annotated[str, msgspec.Meta(max_length=21, description="2026-12-24/2026-12-26")]
Weekday = Literal["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class PutCalendar(Asked):
    """The dates of a calendar: written out, as weekdays, or as an iCalendar text."""

    dates: Annotated[list[DateText], msgspec.Meta(max_length=2000)] = []
    ranges: Annotated[list[RangeText], msgspec.Meta(max_length=2000)] = []
    weekdays: Annotated[list[Weekday], msgspec.Meta(max_length=7)] = []
    ics: Annotated[str, msgspec.Meta(max_length=500_000)] | None = None
    description: Annotated[str, msgspec.Meta(max_length=2000)] = ""


class PutOptions(Asked):
    """How a replacement is meant."""

    force: bool = False


class Calendar(Shown):
    """A calendar."""

    name: str
    dates: list[DateText]
    ranges: list[RangeText]
    weekdays: list[str]
    description: str
    revision: int
    etag: str
    created_at: Instant
    updated_at: Instant
    used_by: int | None = None
    operation_id: str | None = None
