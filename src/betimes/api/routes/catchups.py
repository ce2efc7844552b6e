"""Catching up after an outage: what was missed, and what of it waits for approval."""

from typing import Any
from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged, read_id
from betimes.domain.errors import NotFound
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.ops import catchups as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import catchups as wire
from betimes.wire.base import Page, shown_instant, shown_maybe
from betimes.wire.keys import PageOnly

STATES = {
    ops.EpisodeState.OPEN: "draining",
    ops.EpisodeState.WAITING: "waiting",
    ops.EpisodeState.APPROVED: "approved",
    ops.EpisodeState.DROPPED: "dropped",
    ops.EpisodeState.OVER: "over",
}


def shown_catchup(view: ops.CatchupView, *, full: bool = False) -> wire.Catchup:
    """An episode as it is shown."""
    one = view.catchup
    shown = wire.Catchup(
        id=to_text("ctu", one.id),
        state=STATES[one.state],
        runs=one.runs,
        held=one.held,
        released=one.released,
        dropped=one.dropped,
        per_second=one.per_second,
        opened_at=shown_instant(one.opened_at),
        found_at=shown_instant(one.found_at),
        first_fire_at=shown_instant(one.first_fire_at),
        last_fire_at=shown_instant(one.last_fire_at),
        drained_at=shown_instant(view.drained_at),
        decided_at=shown_maybe(one.decided_at),
        decided_by=one.decided_by,
        reason=one.reason,
    )
    if full:
        shown.by_queue = [wire.QueueShare(queue=by.queue, runs=by.runs) for by in view.by_queue]
        shown.by_job = [
            wire.JobShare(
                job_id=to_text("job", by.job),
                runs=by.runs,
                first_fire_at=shown_instant(by.first_fire_at),
                last_fire_at=shown_instant(by.last_fire_at),
            )
            for by in view.by_job
        ]
    return shown


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of episodes, newest first."""
    scope = ("catchups", call.tenant)
    before = None
    if call.query.cursor is not None:
        before = msgspec.convert(call.leaves.read(scope, call.query.cursor)[0], type=UUID)
    limit = coerced(call.query.limit)
    found = await ops.list_catchups(call.service.desk, call.tenant, before=before, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].catchup.id)])
    return paged(call, page([shown_catchup(one) for one in found], cursor=cursor))


def _in_path(call: Call[Any, Any]) -> UUID:
    return read_id(call.service.desk, "ctu", call.path["catchup"], "catchup")


async def read(call: Call[NoQuery, None]) -> Reply:
    """One episode, with the queues and jobs that have most of what waits."""
    try:
        found = await ops.get_catchup(call.service.desk, call.tenant, _in_path(call))
    except NotFound:
        raise missing("catchup", call.path["catchup"]) from None
    return Reply(value=shown_catchup(found, full=True))


async def approve(call: Call[NoQuery, wire.DecideCatchup]) -> Reply:
    """Let what waits run, paced."""
    return await _decide(call, ops.Verdict.APPROVE)


async def drop(call: Call[NoQuery, wire.DecideCatchup]) -> Reply:
    """Record what waits as dropped; none of it runs."""
    return await _decide(call, ops.Verdict.DROP)


async def _decide(call: Call[NoQuery, wire.DecideCatchup], verdict: ops.Verdict) -> Reply:
    catchup = _in_path(call)

    async def verb(desk: Desk) -> ops.CatchupView:
        try:
            return await ops.decide_catchup(
                desk,
                call.tenant,
                catchup,
                verdict,
                actor=call.caller.key,
                reason=call.body.reason,
            )
        except NotFound:
            raise missing("catchup", call.path["catchup"]) from None

    return await perform(call, verb, _told)


def _told(view: ops.CatchupView) -> Told:
    shown = shown_catchup(view, full=True)
    return Told(
        answer=answer(200, shown),
        resource=shown.id,
        shard=view.catchup.shard,
        after={"state": shown.state, "held": shown.held},
    )


ONE = "/v1/catchups/{catchup}"
ROUTES = (
    Route(
        method="GET",
        path="/v1/catchups",
        name="catchups.list",
        says="List the times the tenant had to catch up, newest first.",
        handler=list_all,
        scope=Scope.RUNS_READ,
        query=PageOnly,
        answers={200: Page[wire.Catchup]},
        headers=("Link",),
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=ONE,
        name="catchups.get",
        says="Read one catch-up: how much was missed, and what of it waits for approval.",
        handler=read,
        scope=Scope.RUNS_READ,
        answers={200: wire.Catchup},
        problems=("not_found",),
    ),
    Route(
        method="POST",
        path=f"{ONE}/approve",
        name="catchups.approve",
        says="Let what waits run, at the pace of the tenant.",
        handler=approve,
        scope=Scope.RUNS_WRITE,
        body=wire.DecideCatchup,
        body_optional=True,
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        answers={200: wire.Catchup},
        problems=("not_found", "invalid_state"),
    ),
    Route(
        method="POST",
        path=f"{ONE}/drop",
        name="catchups.drop",
        says="Drop what waits: none of it runs, every fire of it is recorded.",
        handler=drop,
        scope=Scope.RUNS_WRITE,
        body=wire.DecideCatchup,
        body_optional=True,
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        answers={200: wire.Catchup},
        problems=("not_found", "invalid_state"),
    ),
)
