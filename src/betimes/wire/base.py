"""What all shapes have in common: how they are read, and how times and durations look."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

Instant = Annotated[
    str,
    msgspec.Meta(
        description="RFC 3339 with an offset; answered in UTC with microseconds.",
        extra_json_schema={"format": "date-time"},
    ),
]
DurationText = Annotated[
    str, msgspec.Meta(description="ISO 8601 duration such as PT15M.", max_length=64)
]
Duration = Annotated[
    str | int | float,
    msgspec.Meta(description="PT15M, 15m, or seconds as a number."),
]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Search = Annotated[
    str,
    msgspec.Meta(
        max_length=500,
        description='Filters and words: `state:dead queue:mail since:1h tag.env:prod "timeout"`.',
    ),
]
Json = Any
"""Any JSON value."""

Members = dict[str, Any]
NAIVE_LENGTH = len("2026-01-01T00:00:00.000000")


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """A body or a query as it is read: what is not known is refused."""


class Shown(msgspec.Struct, kw_only=True):
    """Something that is answered; clients tolerate members they do not know."""


class Incomplete(Shown):
    """Why a page may lack something that belongs on it, and of which jobs."""

    reason: Annotated[
        str,
        msgspec.Meta(
            description="`schedule_too_expensive`: the schedule alone takes more steps than an "
            "evaluation may take. `evaluation_budget_used`: the jobs before have used up what one "
            "page may cost; ask for a shorter span, or by queue or job. `too_many_jobs`: more jobs "
            "fire in the span than are looked at."
        ),
    ]
    job_ids: Annotated[
        list[str],
        msgspec.Meta(description="The first of them; empty where they were not looked at."),
    ]
    jobs: Annotated[
        int | None, msgspec.Meta(description="How many there are; null where nobody has counted.")
    ]


class Page(Shown, Generic[T]):
    """A page of a list. A null `next_cursor` is the only mark of the end."""

    items: list[T]
    next_cursor: str | None = None
    prev_cursor: str | None = None
    estimated_total: int | msgspec.UnsetType = msgspec.UNSET
    incomplete: (
        Annotated[
            list[Incomplete],
            msgspec.Meta(description="Only where something is left out: why, and of which jobs."),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def shown_bytes(content: bytes | None) -> Any:
    """Bytes as JSON; what is not JSON as text, what is not text as base64."""
    if content is None:
        return None
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        pass
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


def shown_instant(instant: datetime) -> str:
    """UTC with Z and microseconds, always."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return f"{instant.isoformat(timespec='microseconds')[:NAIVE_LENGTH]}Z"


def shown_maybe(instant: datetime | None) -> str | None:
    """The same for what may not have happened."""
    return None if instant is None else shown_instant(instant)


def shown_duration(duration: timedelta) -> str:
    """ISO 8601 with hours, minutes and seconds."""
    total = duration.total_seconds()
    sign, total = ("-", -total) if total < 0 else ("", total)
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = [(int(hours), "H"), (int(minutes), "M")]
    text = "".join(f"{value}{unit}" for value, unit in parts if value)
    if seconds or not text:
        text += f"{seconds:.6f}".rstrip("0").rstrip(".") + "S"
    return f"{sign}PT{text}"
