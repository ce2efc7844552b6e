"""Alert rules."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.editing import check_preconditions
from betimes.api.etag import expected_revision, tag_of, unchanged
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.api.shaping import coerced, missing, page, paged, read_span
from betimes.domain.alert import KINDS, Condition, Unit
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.event import Severity
from betimes.domain.ids import JobId, from_text, to_text
from betimes.domain.scopes import Scope
from betimes.ops import alerts as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import alerts as wire
from betimes.wire.base import Page, shown_duration, shown_instant, shown_maybe
from betimes.wire.calendars import PutOptions
from betimes.wire.keys import PageOnly
from betimes.wire.problem import FieldError

FIRST, LAST = UUID(int=0), UUID(int=(1 << 128) - 1)


def shown_rule(rule: ops.Rule) -> wire.Rule:
    """A rule as it is shown."""
    takes_time = KINDS[rule.condition].unit is Unit.SECONDS
    return wire.Rule(
        name=rule.name,
        condition=rule.condition.value,
        threshold=shown_duration(timedelta(seconds=rule.threshold))
        if takes_time
        else rule.threshold,
        window=shown_duration(rule.window),
        for_=shown_duration(rule.hold),
        severity=rule.severity.name.lower(),
        jobs=[to_text("job", job) for job in rule.jobs],
        tags=dict(rule.tags),
        queues=list(rule.queues),
        targets=list(rule.targets),
        disabled=rule.disabled,
        checked_at=shown_maybe(rule.checked_at),
        revision=rule.revision,
        etag=tag_of(rule.revision),
        created_at=shown_instant(rule.created_at),
        created_by=rule.created_by,
        updated_at=shown_instant(rule.updated_at),
    )


async def list_all(call: Call[PageOnly, None]) -> Reply:
    """A page of rules."""
    scope = ("alert-rules", call.tenant)
    after = ""
    if call.query.cursor is not None:
        (after,) = call.leaves.read(scope, call.query.cursor)
    limit = coerced(call.query.limit)
    found = await ops.list_rules(call.service.desk, call.tenant, after=after, most=limit)
    cursor = None
    if len(found) == limit:
        cursor = call.leaves.write(scope, [found[-1].name])
    return paged(call, page([shown_rule(one) for one in found], cursor=cursor))


def _named(call: Call[Any, Any]) -> str:
    name = call.path["rule"]
    if "\x00" in name:
        raise missing("rule", name)
    return name


async def read(call: Call[NoQuery, None]) -> Reply:
    """One rule."""
    name = _named(call)
    try:
        rule = await ops.get_rule(call.service.desk, call.tenant, name)
    except NotFound:
        raise missing("rule", name) from None
    tag = tag_of(rule.revision)
    if unchanged(call.request, tag):
        return Reply(status=304, headers={"ETag": tag})
    return Reply(value=shown_rule(rule), headers={"ETag": tag})


async def put(call: Call[PutOptions, wire.PutRule]) -> Reply:
    """Make a rule, or replace it."""
    fresh = _rule(call, _named(call), call.body)
    known = await ops.find_rule(call.service.desk, call.tenant, fresh.name)
    replaces = None if known is None else known.revision
    check_preconditions(call.request, replaces, force=call.query.force)
    if known is not None:
        fresh = replace(
            fresh,
            created_at=known.created_at,
            created_by=known.created_by,
            checked_at=known.checked_at,
        )

    async def verb(desk: Desk) -> ops.StoredRule:
        return await ops.put_rule(
            desk,
            fresh,
            replaces=replaces,
            most=call.service.notifying.rules_max,
        )

    def tell(stored: ops.StoredRule) -> Told:
        shown = shown_rule(stored.rule)
        headers = {"ETag": shown.etag}
        if stored.created:
            headers["Location"] = f"/v1/alert-rules/{shown.name}"
        return Told(
            answer=answer(201 if stored.created else 200, shown, headers=headers),
            resource=f"alert-rule:{shown.name}",
            before=None if replaces is None else {"revision": replaces},
            after={"revision": shown.revision, "condition": shown.condition},
        )

    return await perform(call, verb, tell)


def _rule(call: Call[Any, Any], name: str, asked: wire.PutRule) -> ops.Rule:
    condition = Condition(asked.condition)
    kind = KINDS[condition]
    now = call.service.now()
    return ops.Rule(
        tenant=call.tenant,
        name=name,
        condition=condition,
        threshold=_threshold(kind.unit, asked.threshold),
        window=kind.window if asked.window is None else read_span(asked.window, pointer="/window"),
        hold=read_span(asked.for_, pointer="/for"),
        severity=Severity[asked.severity.upper()],
        jobs=tuple(dict.fromkeys(_job(text, place) for place, text in enumerate(asked.jobs))),
        tags=asked.tags,
        queues=tuple(dict.fromkeys(asked.queues)),
        targets=tuple(dict.fromkeys(asked.targets)),
        disabled=asked.disabled,
        created_at=now,
        updated_at=now,
        created_by=call.caller.key,
    )


def _threshold(unit: Unit, asked: str | float) -> float:
    if unit is Unit.SECONDS:
        return read_span(asked, pointer="/threshold").total_seconds()
    if isinstance(asked, str):
        raise _wrong("/threshold", f"expected {unit.value}, got {asked[:40]!r}")
    return float(asked)


def _job(text: str, place: int) -> JobId:
    try:
        return JobId(from_text("job", text))
    except Invalid:
        raise _wrong(f"/jobs/{place}", f"expected the id of a job, got {text[:50]!r}") from None


def _wrong(pointer: str, sentence: str) -> Trouble:
    error = FieldError(pointer=pointer, code="invalid_parameter", detail=sentence)
    return Trouble("invalid_parameter", sentence, errors=[error])


async def remove(call: Call[NoQuery, None]) -> Reply:
    """Forget a rule; what is open of it ends, untold."""
    name = _named(call)
    try:
        rule = await ops.get_rule(call.service.desk, call.tenant, name)
    except NotFound:
        raise missing("rule", name) from None
    expected_revision(call.request, rule.revision)

    async def verb(desk: Desk) -> None:
        await ops.delete_rule(desk, call.tenant, name)

    return await perform(
        call,
        verb,
        lambda _: Told(
            answer=answer(204),
            resource=f"alert-rule:{name}",
            before={"revision": rule.revision},
        ),
    )


RULE = "/v1/alert-rules/{rule}"
ROUTES = (
    Route(
        method="GET",
        path="/v1/alert-rules",
        name="alert_rules.list",
        says="List alert rules by name.",
        handler=list_all,
        scope=Scope.NOTIFICATIONS_READ,
        query=PageOnly,
        answers={200: Page[wire.Rule]},
        problems=("cursor_invalid",),
    ),
    Route(
        method="GET",
        path=RULE,
        name="alert_rules.get",
        says="Read one alert rule.",
        handler=read,
        scope=Scope.NOTIFICATIONS_READ,
        answers={200: wire.Rule, 304: None},
        headers=("ETag",),
    ),
    Route(
        method="PUT",
        path=RULE,
        name="alert_rules.put",
        says="Make or replace an alert rule.",
        handler=put,
        scope=Scope.NOTIFICATIONS_WRITE,
        query=PutOptions,
        body=wire.PutRule,
        answers={200: wire.Rule, 201: wire.Rule},
        keyed=Keyed.OPTIONAL,
        load=Load.WRITE,
        headers=("ETag", "Location"),
        problems=("precondition_failed", "precondition_required", "quota_exceeded"),
        example={"condition": "job_failed_n", "threshold": 3, "severity": "critical"},
    ),
    Route(
        method="DELETE",
        path=RULE,
        name="alert_rules.delete",
        says="Forget an alert rule; what is open of it ends, untold.",
        handler=remove,
        scope=Scope.NOTIFICATIONS_WRITE,
        answers={204: None},
        load=Load.WRITE,
        problems=("precondition_failed",),
    ),
)
