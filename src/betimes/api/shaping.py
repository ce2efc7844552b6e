"""Between wire and domain: texts of ids, times and durations; fields that were asked for."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

import msgspec

from betimes.api.call import JSON, Call, Reply, Request, encode
from betimes.api.etag import unchanged
from betimes.api.problem import Trouble
from betimes.api.route import Route
from betimes.domain.errors import Invalid, Refused
from betimes.domain.ids import from_text, shard_of
from betimes.ops.checks import check_instant
from betimes.ops.desk import Desk
from betimes.schedule.duration import read_duration
from betimes.wire.base import Page
from betimes.wire.problem import FieldError

LIMIT_MAX = 1_000
DURATION_MAX = timedelta(days=366 * 100)
LIMIT_MIN = timedelta(milliseconds=1)
RETENTION_LEAST, RETENTION_MOST = timedelta(minutes=1), timedelta(days=3_660)
INSTANT_LENGTH_MAX = 64
TAG_BYTES = 12
SHOWN_ONCE = frozenset({"secret", "code"})


def read_instant(text: str, *, pointer: str) -> datetime:
    """An RFC 3339 time with its offset, within what everybody can hold."""
    try:
        instant = msgspec.convert(text[:INSTANT_LENGTH_MAX], type=datetime)
        check_instant(instant, pointer=pointer)
    except (msgspec.ValidationError, ValueError, OverflowError):
        raise _wrong(
            f"expected a time such as 2026-01-01T00:00:00Z, got {text[:64]!r}", pointer
        ) from None
    return instant


def maybe_instant(text: str | None, *, pointer: str) -> datetime | None:
    """The same for what may be missing."""
    return None if text is None else read_instant(text, pointer=pointer)


def read_span(source: str | float, *, pointer: str) -> timedelta:
    """A duration of elapsed time."""
    try:
        found = read_duration(source, pointer)
        span = timedelta(microseconds=found.elapsed())
    except Refused as error:
        raise _wrong(error.sentence, pointer) from None
    except (OverflowError, ValueError):
        raise _wrong("expected a duration such as PT15M", pointer) from None
    if not timedelta(0) <= span <= DURATION_MAX:
        raise _wrong("expected a duration of 0 to 100 years", pointer)
    return span


def maybe_span(source: str | float | None, *, pointer: str) -> timedelta | None:
    """The same for what may be missing."""
    return None if source is None else read_span(source, pointer=pointer)


def maybe_limit(source: str | float | None, *, pointer: str) -> timedelta | None:
    """How long something may take, if anybody says so; no time at all is a mistake."""
    span = maybe_span(source, pointer=pointer)
    if span is not None and span < LIMIT_MIN:
        raise _wrong(f"expected a duration of at least a millisecond, got {source!r}", pointer)
    return span


def read_retention(said: str | float, *, pointer: str) -> int:
    """How long runs are kept once they have ended, in milliseconds."""
    kept = read_span(said, pointer=pointer)
    if not RETENTION_LEAST <= kept <= RETENTION_MOST:
        sentence = f"expected a retention within {RETENTION_LEAST} and {RETENTION_MOST}, got {kept}"
        raise _wrong(sentence, pointer)
    return kept // timedelta(milliseconds=1)


def read_id(desk: Desk, prefix: str, text: str, noun: str) -> UUID:
    """An id out of a path; one that cannot exist is answered like one that does not."""
    try:
        identifier = from_text(prefix, text)
    except Invalid:
        raise missing(noun, text) from None
    if shard_of(identifier) >= desk.shards:
        raise missing(noun, text)
    return identifier


def missing(noun: str, text: str) -> Trouble:
    """The answer for what is not there, and for what belongs to somebody else."""
    return Trouble("not_found", f"there is no {noun} {text[:200]!r}", resource_type=noun)


def coerced(limit: int) -> int:
    """A page size; larger ones are cut, not refused."""
    return min(limit, LIMIT_MAX)


def check_fields(route: Route, fields: Sequence[str]) -> None:
    """Refuse names that no item of the answer would have, also when there is no item."""
    unknown = sorted(set(fields) - route.selectable) if fields and route.selectable else ()
    if unknown:
        raise Trouble("invalid_parameter", f"there is no field {unknown[0][:100]!r} to select")


def selected(value: Any, fields: Sequence[str]) -> Any:
    """Only the members that were asked for."""
    if not fields:
        return value
    told = msgspec.to_builtins(value)
    unknown = sorted(set(fields) - set(told) - _known(value))
    if unknown:
        raise Trouble("invalid_parameter", f"there is no field {unknown[0][:100]!r} to select")
    return {name: told[name] for name in told if name in fields}


def page(
    items: Sequence[Any],
    *,
    cursor: str | None,
    back: str | None = None,
    fields: Sequence[str] = (),
    estimate: int | None = None,
) -> Page[Any]:
    """A page with the fields that were asked for."""
    return Page(
        items=[selected(item, fields) for item in items],
        next_cursor=cursor,
        prev_cursor=back,
        estimated_total=msgspec.UNSET if estimate is None else estimate,
    )


def paged(call: Call[Any, Any], shown: Page[Any]) -> Reply:
    """A page with its Link header, and the way back if the list knows no other."""
    if shown.prev_cursor is None:
        shown.prev_cursor = call.leaves.back
    links = [
        f'<{call.request.path}?{_asked_again(call.request, cursor)}>; rel="{name}"'
        for name, cursor in (("next", shown.next_cursor), ("prev", shown.prev_cursor))
        if cursor is not None
    ]
    return Reply(value=shown, headers={"Link": ", ".join(links)} if links else {})


def _asked_again(request: Request, cursor: str) -> str:
    """The query of a request with another cursor: filters and order must stay."""
    text = request.query_string.decode("ascii", "ignore")
    kept = [(name, value) for name, value in parse_qsl(text) if name != "cursor"]
    return urlencode([*kept, ("cursor", cursor)], safe=",:")


def shaped(call: Call[Any, Any], reply: Reply) -> Reply:
    """What all readings have in common: the fields asked for, and 304 for what is known."""
    if call.only_try and reply.content and reply.media == JSON:
        reply.content = _validated(reply.content)
    if call.fields and reply.value is not None:
        reply.value = _chosen(reply.value, call.fields)
    if reply.cacheable and reply.status == HTTPStatus.OK:
        if "ETag" not in reply.headers:
            reply.content = reply.body()
            reply.headers["ETag"] = f'"{blake2b(reply.content, digest_size=TAG_BYTES).hexdigest()}"'
        if unchanged(call.request, reply.headers["ETag"]):
            return Reply(status=304, headers=reply.headers)
    return reply


def _validated(content: bytes) -> bytes:
    """The answer of a trial says so, and gives away no secret that will never open anything."""
    told = msgspec.json.decode(content)
    told |= {name: "" for name in SHOWN_ONCE if name in told}
    return encode({**told, "validated": True})


def _chosen(value: Any, fields: Sequence[str]) -> Any:
    """Of a page the fields of its items, of anything else its own."""
    if not isinstance(getattr(value, "items", None), list):
        return selected(value, fields)
    told: dict[str, Any] = msgspec.to_builtins(value)
    return {**told, "items": [selected(item, fields) for item in value.items]}


def _known(value: Any) -> set[str]:
    return {one.encode_name for one in msgspec.structs.fields(type(value))}


def _wrong(sentence: str, pointer: str) -> Trouble:
    return Trouble(
        "invalid_parameter",
        sentence,
        errors=[FieldError(pointer=pointer, code="invalid_parameter", detail=sentence)],
    )
