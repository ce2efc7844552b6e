"""What alert rules have found, and silences."""

from uuid import UUID

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged, read_instant
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import from_text, to_text
from betimes.domain.scopes import Scope
from betimes.ops import alerts as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import alerts as wire
from betimes.wire.base import Page, shown_instant, shown_maybe
from betimes.wire.keys import PageOnly

FIRST, LAST = UUID(int=0), UUID(int=(1 << 128) - 1)


def shown_alert(alert: ops.Alert) -> wire.Alert:
    """An episode as it is shown."""
    return wire.Alert(
        id=to_text("alr", alert.id),
        rule=alert.rule,
        condition=alert.condition,
        subject=alert.subject,
        severity=alert.severity,
        state=alert.state.name.lower(),
        is_told=alert.is_told,
        value=alert.value,
        threshold=alert.threshold,
        since=shown_instant(alert.since),
        fired_at=shown_maybe(alert.fired_at),
        resolved_at=shown_maybe(alert.resolved_at),
    )


async def list_alerts(call: Call[wire.ListAlerts, None]) -> Reply:
    """A page of alerts, newest first."""
    query = call.query
    scope = ("alerts", call.tenant, query.state, query.rule)
    before = LAST
    if query.cursor is not None:
        before = msgspec.convert(call.leaves.read(scope, query.cursor)[0], type=UUID)
    limit = coerced(query.limit)
    found = await ops.list_alerts(
        call.service.desk,
        call.tenant,
        before=before,
        states=[ops.AlertState[state.upper()] for state in query.state],
        rule=query.rule,
        most=limit,
    )
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_alert(one) for one in found], cursor=cursor))


def shown_silence(silence: ops.Silence) -> wire.Silence:
    """A silence as it is shown."""
    return wire.Silence(
        id=to_text("sil", silence.id),
        rule=silence.rule,
        subject=silence.subject,
        reason=silence.reason,
        until=shown_instant(silence.until),
        created_at=shown_instant(silence.created_at),
        created_by=silence.created_by,
    )


async def list_silences(call: Call[PageOnly, None]) -> Reply:
    """A page of silences that are not over."""
    scope = ("silences", call.tenant)
    after = FIRST
    if call.query.cursor is not None:
        after = msgspec.convert(call.leaves.read(scope, call.query.cursor)[0], type=UUID)
    limit = coerced(call.query.limit)
    found = await ops.list_silences(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [str(found[-1].id)])
    return paged(call, page([shown_silence(one) for one in found], cursor=cursor))


async def silence(call: Call[NoQuery, wire.NewSilence]) -> Reply:
    """Tell nobody for a while."""
    body = call.body
    wanted = ops.new_silence(
        call.service.desk,
        rule=body.rule,
        subject=body.subject,
        reason=body.reason,
        until=read_instant(body.until, pointer="/until"),
        by=call.caller.key,
    )

    async def verb(desk: Desk) -> ops.Silence:
        return await ops.silence(desk, call.tenant, wanted)

    def tell(made: ops.Silence) -> Told:
        shown = shown_silence(made)
        return Told(
            answer=answer(201, shown),
            resource=shown.id,
            after={"rule": shown.rule, "subject": shown.subject, "until": shown.until},
        )

    return await perform(call, verb, tell)


async def unsilence(call: Call[NoQuery, None]) -> Reply:
    """End a silence before its time."""
    text = call.path["silence"]
    try:
        identity = from_text("sil", text)
    except Invalid:
        raise missing("silence", text) from None

    async def verb(desk: Desk) -> None:
        try:
            await ops.end_silence(desk, call.tenant, identity)
        except NotFound:
            raise missing("silence", text) from None

    return await perform(call, verb, lambda _: Told(answer=answer(204), resource=text))


ROUTES = (
    Route(
        method="GET",
        path="/v1/alerts",
        name="alerts.list",
        says="List what alert rules have found, newest first.",
        handler=list_alerts,
        scope=Scope.NOTIFICATIONS_READ,
        query=wire.ListAlerts,
        answers={200: Page[wire.Alert]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path="/v1/silences",
        name="silences.list",
        says="List silences that are not over.",
        handler=list_silences,
        scope=Scope.NOTIFICATIONS_READ,
        query=PageOnly,
        answers={200: Page[wire.Silence]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="POST",
        path="/v1/silences",
        name="silences.create",
        says="Tell nobody of a rule or a subject for a while.",
        handler=silence,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.NewSilence,
        answers={201: wire.Silence},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        problems=("time_in_past",),
        example={
            "rule": "nightly-late",
            "until": "2100-01-01T00:00:00Z",
            "reason": "The warehouse moves.",
        },
    ),
    Route(
        method="DELETE",
        path="/v1/silences/{silence}",
        name="silences.delete",
        says="End a silence before its time.",
        handler=unsilence,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={204: None},
        load=Load.WRITE,
    ),
)
