"""The types of events."""

from collections.abc import Mapping
from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.route import NoQuery, Route
from betimes.domain.event import CATALOGUE
from betimes.domain.scopes import Scope
from betimes.wire import endpoints as wire


async def event_types(call: Call[NoQuery, None]) -> Reply:  # noqa: ARG001 -- the same for everybody
    """Every type of event."""
    return Reply(
        value=wire.EventTypes(
            items=[
                wire.EventType(
                    name=one.name,
                    severity=one.severity.name.lower(),
                    says=one.says,
                    schema=_schema(one.example),
                    example=dict(one.example),
                )
                for one in CATALOGUE.values()
            ]
        ),
        cacheable=True,
    )


KINDS: Mapping[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    bool: "boolean",
}


def _schema(example: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": KINDS[type(value)]} for name, value in example.items()},
        "additionalProperties": True,
    }


ROUTES = (
    Route(
        method="GET",
        path="/v1/event-types",
        name="event_types.list",
        says="Every type of event, with the shape of its data.",
        handler=event_types,
        scope=Scope.NOTIFICATIONS_READ,
        answers={200: wire.EventTypes, 304: None},
        headers=("ETag",),
    ),
)
