"""Fires as an iCalendar file (RFC 5545): an event for each, which every calendar understands."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

LINE_BYTES = 75
MARKS = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n", "\r": ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job and when it fires."""

    id: str
    name: str
    says: str
    fires: Sequence[datetime]


def write_ics(plans: Iterable[Plan], *, stamp: datetime) -> str:
    """A calendar with every fire of every plan; the same fire has the same UID in every export."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Betimes//Betimes//EN",
        "CALSCALE:GREGORIAN",
    ]
    for plan in plans:
        for fire in plan.fires:
            lines += _event(plan, fire, stamp)
    lines.append("END:VCALENDAR")
    return "".join(f"{piece}\r\n" for line in lines for piece in folded(line))


def _event(plan: Plan, fire: datetime, stamp: datetime) -> list[str]:
    return [
        "BEGIN:VEVENT",
        f"UID:{plan.id}-{_utc(fire)}@betimes",
        f"DTSTAMP:{_utc(stamp)}",
        f"DTSTART:{_utc(fire)}",
        f"SUMMARY:{plan.name.translate(MARKS)}",
        f"DESCRIPTION:{plan.says.translate(MARKS)}",
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def folded(line: str) -> Iterator[str]:
    """A line in pieces of at most 75 bytes, no letter cut apart; all but the first are indented."""
    piece, size = "", 0
    for letter in line:
        width = len(letter.encode())
        if size + width > LINE_BYTES:
            yield piece
            piece, size = " ", 1
        piece += letter
        size += width
    yield piece
