"""Audit and events."""

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from betimes.api.call import Call, Reply, Stream
from betimes.api.event_shapes import event_piece, shown_event
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Policy, Route
from betimes.api.shaping import coerced, maybe_instant, missing, page, paged, read_instant
from betimes.api.streams import PAGE, Piece
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import floor_of, from_text, to_ms
from betimes.domain.scopes import Scope
from betimes.ops import trail as ops
from betimes.rhythm import first_of
from betimes.wire import more as wire
from betimes.wire.base import Page, shown_instant

FOREVER = (datetime(2200, 1, 1, tzinfo=UTC), 0, 0)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
SLICE = 100
COMMENT_SECONDS = 15.0
REMEMBERED_MS = 60_000
"""How long a stream that has caught up remembers what it was told."""
PARTS = 2


def shown_act(entry: ops.Entry) -> wire.AuditEntry:
    """An act as it is shown."""
    act = entry.act
    return wire.AuditEntry(
        id=f"aud_{entry.shard}-{entry.number}",
        at=shown_instant(act.at),
        actor=dict(act.actor),
        action=act.action,
        resource=act.resource,
        request_id=act.request_id,
        before=None if act.before is None else dict(act.before),
        after=None if act.after is None else dict(act.after),
        digest=entry.digest.hex(),
    )


async def list_acts(call: Call[wire.ListAudit, None]) -> Reply:
    """A page of acts, newest first."""
    query = call.query
    times = (query.since, query.until)
    scope = ("audit", call.tenant, query.action, query.resource, query.actor, *times)
    until = maybe_instant(query.until, pointer="/until")
    before = FOREVER if until is None else (until, 0, 0)
    if query.cursor is not None:
        at, shard, number = call.leaves.read(scope, query.cursor)
        before = (read_instant(at, pointer="/cursor"), shard, number)
    limit = coerced(query.limit)
    found = await ops.list_acts(
        call.service.desk,
        call.tenant,
        before=before,
        since=maybe_instant(query.since, pointer="/since") or BEGINNING,
        action=query.action,
        resource=query.resource,
        actor=query.actor,
        most=limit,
    )
    cursor = None
    if len(found) == limit:
        last = found[-1]
        place = [shown_instant(last.act.at), last.shard, last.number]
        cursor = call.leaves.write(scope, place)
    return paged(call, page([shown_act(entry) for entry in found], cursor=cursor))


async def read_act(call: Call[NoQuery, None]) -> Reply:
    """One act."""
    text = call.path["act"]
    head, _, numbers = text.partition("_")
    parts = numbers.split("-")
    good = head == "aud" and len(parts) == PARTS and all(p.isdecimal() for p in parts)
    if not good or len(parts[0]) > 4 or len(parts[1]) > 18:  # noqa: PLR2004 -- what columns hold
        raise missing("act", text)
    try:
        entry = await ops.get_act(call.service.desk, call.tenant, int(parts[0]), int(parts[1]))
    except NotFound:
        raise missing("act", text) from None
    return Reply(value=shown_act(entry), cacheable=True)


async def verify(call: Call[NoQuery, None]) -> Reply:
    """Whether every chain of the tenant holds, recomputed now."""
    checks = await ops.verify(call.service.desk, call.tenant)
    chains = [
        wire.Chain(
            shard=check.shard,
            entries=check.entries,
            head=check.head.hex(),
            intact=check.broken_at is None,
            broken_at=check.broken_at,
        )
        for check in checks
    ]
    return Reply(value=wire.Verified(intact=all(chain.intact for chain in chains), chains=chains))


def _event_id(text: str) -> UUID:
    try:
        return from_text("evt", text)
    except Invalid:
        raise Trouble(
            "invalid_parameter", f"expected the id of an event, got {text[:50]!r}"
        ) from None


async def list_events(call: Call[wire.ListEvents, None]) -> Reply:
    """Events after one, in order; those of the last seconds come with the next call."""
    query = call.query
    after = UUID(int=0) if query.after is None else _event_id(query.after)
    found = await ops.list_events(
        call.service.desk,
        call.tenant,
        after=after,
        types=query.types or None,
        most=coerced(query.limit),
        settled=True,
    )
    items = [shown_event(event) for event in found]
    return Reply(
        value=wire.EventPage(items=items, next_after=items[-1].id if items else query.after)
    )


async def stream(call: Call[wire.StreamEvents, None]) -> Reply:
    """Events as they happen; `Last-Event-ID` resumes."""
    said = call.request.header(b"last-event-id")
    last = _now(call) if said is None else _event_id(said)
    call.service.admission.open_stream(call.caller)
    return Reply(
        stream=Stream(
            pieces=Follower(call, last, resumes=said is not None).pieces(),
            let_go=partial(call.service.admission.close_stream, call.caller),
        ),
        media="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _now(call: Call[Any, Any]) -> UUID:
    return floor_of(to_ms(call.service.now()))


class Follower:
    """One stream of a tenant's events: a place in what is kept for all of them."""

    def __init__(self, call: Call[wire.StreamEvents, None], last: UUID, *, resumes: bool) -> None:
        self._call = call
        self._after = last
        self._types = tuple(call.query.types) or None
        self._resumes = resumes
        self._caught: set[UUID] = set()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The text of the stream; it ends when the node does, or when it fell behind."""
        service = self._call.service
        hub = service.streams.enter(self._call.tenant, self._types)
        place = hub.end
        try:
            yield b"retry: 3000\n\n"
            if self._resumes:
                async for text in self._missed():
                    yield text
            while not service.draining.begun:
                changed = hub.changed
                kept = hub.since(place, most=SLICE)
                if kept is None:
                    yield b": fell behind; resume with Last-Event-ID\n\n"
                    return
                place += len(kept)
                for piece in kept:
                    if self._wants(piece):
                        yield piece.text
                if kept:
                    continue
                if hub.is_over:
                    return
                if await first_of(changed.wait(), service.clock.sleep(COMMENT_SECONDS)):
                    yield b": still here\n\n"
        finally:
            service.streams.leave(hub, self._types)

    def _wants(self, piece: Piece) -> bool:
        chosen = self._types is None or piece.type in self._types
        return chosen and piece.id > self._after and piece.id not in self._caught

    async def _missed(self) -> AsyncIterator[bytes]:
        """What has happened since the last one it was told, page by page."""
        after = self._after
        while not self._call.service.draining.begun:
            async with self._call.service.streams.turn(self._call.tenant) as desk:
                found = await ops.list_events(
                    desk,
                    self._call.tenant,
                    after=after,
                    types=self._types,
                    most=PAGE,
                    settled=False,
                )
            # What is older than this cannot be among what comes next.
            horizon = floor_of(to_ms(self._call.service.now()) - REMEMBERED_MS)
            self._caught |= {event.id for event in found if event.id >= horizon}
            for event in found:
                yield event_piece(event)
            if len(found) < PAGE:
                return
            after = found[-1].id


ROUTES = (
    Route(
        method="GET",
        path="/v1/audit",
        name="audit.list",
        says="List what was done, newest first.",
        handler=list_acts,
        scope=Scope.AUDIT_READ,
        query=wire.ListAudit,
        answers={200: Page[wire.AuditEntry]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path="/v1/audit/{act}",
        name="audit.get",
        says="Read one act.",
        handler=read_act,
        scope=Scope.AUDIT_READ,
        answers={200: wire.AuditEntry, 304: None},
        headers=("ETag",),
    ),
    Route(
        method="POST",
        path="/v1/audit/verify",
        name="audit.verify",
        says="Recompute the chains of the audit and tell whether they hold.",
        handler=verify,
        scope=Scope.AUDIT_READ,
        load=Load.AGGREGATE,
        answers={200: wire.Verified},
        policy=Policy.BULK,
    ),
    Route(
        method="GET",
        path="/v1/events",
        name="events.list",
        says="Events after one, in order.",
        handler=list_events,
        scope=Scope.EVENTS_READ,
        query=wire.ListEvents,
        answers={200: wire.EventPage},
    ),
    Route(
        method="GET",
        path="/v1/events/stream",
        name="events.stream",
        says="Events as they happen, as server-sent events.",
        handler=stream,
        scope=Scope.EVENTS_READ,
        query=wire.StreamEvents,
        answers={200: str},
        answer_media="text/event-stream",
        policy=Policy.STREAM,
        waits=True,
        load=Load.READ,
    ),
)
