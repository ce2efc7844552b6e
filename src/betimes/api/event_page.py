"""The reference page of events, made from their catalogue."""

import json

from betimes.domain.event import CATALOGUE, EventType

HEAD = """# Events

<!-- Written by scripts/write_reference.py; do not edit. -->

What happens is written down in the transaction that makes it true: an event exists exactly when
what it tells is so. `GET /v1/events` and `GET /v1/events/stream` read them,
[endpoints](../howto/notifications.md) are told of them, `GET /v1/event-types` lists them with the
shapes of their data.

A webhook gets an event as a CloudEvent 1.0 in its structured JSON form:

```json
{
  "specversion": "1.0",
  "id": "evt_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
  "source": "urn:betimes:tenant:ten_00000000008G00000000000001",
  "type": "run.dead",
  "subject": "run_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
  "time": "2026-01-01T00:00:00.000000Z",
  "datacontenttype": "application/json",
  "severity": "error",
  "data": {}
}
```

`data` has at least the members below; there may be more.
"""


def markdown() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_part(one) for one in CATALOGUE.values())]).rstrip() + "\n"


def _part(one: EventType) -> str:
    example = json.dumps(one.example, indent=2)
    severity = one.severity.name.lower()
    return f"## `{one.name}`\n\n{one.says} Severity: {severity}.\n\n```json\n{example}\n```\n"
