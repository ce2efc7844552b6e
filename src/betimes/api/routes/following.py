"""Answers that go on: the log of a run as it grows, and the export of the audit."""

import csv
import io
from collections.abc import AsyncGenerator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply, Stream, encode
from betimes.api.finding import find_run
from betimes.api.problem import Trouble
from betimes.api.route import Load, NoQuery, Policy, Route
from betimes.api.routes.leases import shown_line
from betimes.api.routes.trail import shown_act
from betimes.api.shaping import maybe_instant
from betimes.domain.ids import RunId
from betimes.domain.scopes import Scope
from betimes.domain.states import FINAL, RunState
from betimes.ops import trail
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.leases import read_log
from betimes.wire import more as wire
from betimes.wire.workers import FollowLog

LINES = 500
ACTS = 1_000
POLL_SECONDS = 0.5
COMMENT_SECONDS = 15.0
SEQ_MAX = 2_147_483_647
EXPORT_SPAN = timedelta(days=30)
RISKY = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula."""
COLUMNS = ("id", "at", "actor", "action", "resource", "request_id", "before", "after", "digest")


async def follow_log(call: Call[FollowLog, None]) -> Reply:
    """The lines of a run's log as they come; ends when the run has."""
    after = _last_seen(call)
    view = await find_run(call)
    call.service.admission.open_stream(call.caller)
    return Reply(
        stream=Stream(
            pieces=LogFollower(call, view.run.id, after).pieces(),
            let_go=partial(call.service.admission.close_stream, call.caller),
        ),
        media="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _last_seen(call: Call[FollowLog, None]) -> int:
    said = call.request.header(b"last-event-id")
    if said is None:
        return call.query.after
    if not said.isdecimal() or int(said[:11]) > SEQ_MAX:
        raise Trouble("invalid_parameter", f"expected the number of a line, got {said[:50]!r}")
    return int(said)


class LogFollower:
    """Follows the log of one run."""

    def __init__(self, call: Call[FollowLog, None], run: RunId, after: int) -> None:
        self._call = call
        self._run = run
        self._after = after

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The text of the stream: lines, and an `end` with the last state."""
        service = self._call.service
        quiet_since = service.clock.monotonic()
        yield b"retry: 3000\n\n"
        while not service.draining.begun:
            # The state first: lines written before the end are then read after it.
            state, lines = await self._look()
            for piece in lines:
                yield piece
            if lines:
                quiet_since = service.clock.monotonic()
                continue
            if state in FINAL:
                told = encode({"state": state.name.lower()})
                yield b"event: end\ndata: %b\n\n" % told
                return
            if service.clock.monotonic() - quiet_since > COMMENT_SECONDS:
                quiet_since = service.clock.monotonic()
                yield b": still here\n\n"
            await service.clock.sleep(POLL_SECONDS)

    async def _look(self) -> tuple[RunState, list[bytes]]:
        """The state, and a page of lines; of one tenant one such look at a time."""
        call = self._call
        async with call.service.streams.turn(call.tenant) as desk:
            state = (await find_run(call, desk)).run.state
            lines = await read_log(
                desk,
                call.tenant,
                self._run,
                after=self._after,
                attempt=call.query.attempt,
                most=LINES,
            )
        if lines:
            self._after = lines[-1].seq
        return state, [
            b"id: %d\nevent: line\ndata: %b\n\n"
            % (line.seq, encode(msgspec.to_builtins(shown_line(line))))
            for line in lines
        ]


async def export_audit(call: Call[NoQuery, wire.ExportAudit]) -> Reply:
    """Every act of a span, newest first, as lines of JSON or as a table."""
    body = call.body
    until = maybe_instant(body.until, pointer="/until") or call.service.now()
    since = maybe_instant(body.since, pointer="/since") or until - EXPORT_SPAN
    if until <= since:
        raise Trouble("invalid_parameter", "expected an end later than the beginning")

    async def verb(_: Desk) -> None:
        """Looking at everything is itself an act."""

    def tell(_: None) -> Told:
        span = {"since": since.isoformat(), "until": until.isoformat()}
        return Told(answer=answer(200), resource="audit", after=span)

    await perform(call, verb, tell)
    call.service.admission.open_stream(call.caller)
    is_table = body.format == "csv"
    return Reply(
        stream=Stream(
            pieces=Exporter(call, since, until).pieces(is_table=is_table),
            let_go=partial(call.service.admission.close_stream, call.caller),
        ),
        media="text/csv; charset=utf-8" if is_table else "application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="audit.{body.format}"'},
    )


class Exporter:
    """Reads the audit page by page while the answer is being sent."""

    def __init__(
        self, call: Call[NoQuery, wire.ExportAudit], since: datetime, until: datetime
    ) -> None:
        self._call = call
        self._since = since
        self._before = (until, 0, 0)

    async def pieces(self, *, is_table: bool) -> AsyncGenerator[bytes, None]:
        """The text of the export."""
        if is_table:
            yield _row(COLUMNS)
        while True:
            acts = await self._page()
            for entry in acts:
                shown = msgspec.to_builtins(shown_act(entry))
                yield _row(_cells(shown)) if is_table else encode(shown) + b"\n"
            if len(acts) < ACTS:
                return

    async def _page(self) -> list[trail.Entry]:
        body = self._call.body
        async with self._call.service.streams.turn(self._call.tenant) as desk:
            acts = await trail.list_acts(
                desk,
                self._call.tenant,
                before=self._before,
                since=self._since,
                action=body.action,
                resource=body.resource,
                actor=body.actor,
                most=ACTS,
            )
        if acts:
            self._before = (acts[-1].act.at, acts[-1].shard, acts[-1].number)
        return acts


def _cells(shown: dict[str, Any]) -> list[str]:
    found = []
    for name in COLUMNS:
        value = shown.get(name)
        text = value if isinstance(value, str) else "" if value is None else encode(value).decode()
        found.append(f"'{text}" if text.startswith(RISKY) else text)
    return found


def _row(cells: Any) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


ROUTES = (
    Route(
        method="GET",
        path="/v1/runs/{run}/logs/stream",
        name="runs.follow_log",
        says="The lines of a run's log as they come, as server-sent events.",
        handler=follow_log,
        scope=Scope.RUNS_READ,
        query=FollowLog,
        answers={200: str},
        answer_media="text/event-stream",
        policy=Policy.STREAM,
        waits=True,
        problems=("retention_expired",),
    ),
    Route(
        method="POST",
        path="/v1/audit/export",
        name="audit.export",
        says="Every act of a span, as lines of JSON or as a table.",
        handler=export_audit,
        scope=Scope.AUDIT_READ,
        body=wire.ExportAudit,
        body_optional=True,
        load=Load.AGGREGATE,
        answers={200: bytes},
        answer_media="*/*",
        policy=Policy.BULK,
        example={"since": "2026-01-01T00:00:00Z", "format": "jsonl"},
    ),
)
