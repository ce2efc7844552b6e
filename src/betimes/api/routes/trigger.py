"""Events at will."""

from betimes.api.acting import answer, perform
from betimes.api.call import Call, Reply
from betimes.api.event_shapes import shown_event
from betimes.api.route import Keyed, Load, NoQuery, Route
from betimes.domain.scopes import Scope
from betimes.ops import trigger as ops
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.wire import more as wire

EXAMPLE = {"type": "run.dead", "data": {"queue": "mail"}}


async def trigger(call: Call[NoQuery, wire.TriggerEvent]) -> Reply:
    """Write an event of a type, marked as a test, for everybody who wants such events."""
    asked = call.body
    body = ops.body_of(asked.type, asked.data)
    named = (body[name] for name in ("run_id", "job_id", "endpoint_id", "queue") if name in body)
    subject = asked.subject or str(next(named, asked.type))
    key = call.key.key if call.key else call.request.id

    async def verb(desk: Desk) -> ops.EventRow:
        return await ops.trigger(
            desk, call.tenant, asked.type, subject=subject, body=body, request=key
        )

    def tell(event: ops.EventRow) -> Told:
        shown = shown_event(event)
        return Told(answer=answer(201, shown), resource=shown.id, after={"type": event.type})

    return await perform(call, verb, tell)


ROUTES = (
    Route(
        method="POST",
        path="/v1/events/trigger",
        name="events.trigger",
        says="Make an event at will, to try who is told of it.",
        handler=trigger,
        scope=Scope.NOTIFICATIONS_WRITE,
        body=wire.TriggerEvent,
        answers={201: wire.Event},
        keyed=Keyed.REQUIRED,
        load=Load.WRITE,
        problems=("payload_too_large",),
        example=EXAMPLE,
    ),
)
