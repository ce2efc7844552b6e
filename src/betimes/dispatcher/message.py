"""An event as a message: for machines as a CloudEvent, for people as a line and a few facts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from betimes.domain.event import CATALOGUE, FIRING, RESOLVED, Severity, severity_of
from betimes.domain.ids import to_text
from betimes.store.audit import EventRow
from betimes.store.run_contents import Content
from betimes.target.redact import Redaction
from betimes.wire.base import shown_bytes, shown_instant

SPEC_VERSION = "1.0"
CLOUD_EVENT = "application/cloudevents+json; charset=utf-8"
FACTS_MAX = 12
PLAIN = Redaction()
CONTENT_BYTES_MAX = 14_000
"""A body should stay under 20 kB, base64 included."""
VALUE_LENGTH_MAX = 300
NOT_FOR_PEOPLE = frozenset({"targets", "state"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What people read."""

    title: str
    severity: Severity
    facts: Mapping[str, str]
    says: str
    at: str


def event_id(event: EventRow) -> str:
    """The id by which a receiver recognises a repetition."""
    return to_text("evt", event.id)


def cloud_event(
    event: EventRow,
    tenant: UUID,
    content: Content | None = None,
    redaction: Redaction = PLAIN,
) -> bytes:
    """The structured JSON form of CloudEvents 1.0; the same bytes for the same event, always.

    With `content`, what is known of the run at that moment is added.
    """
    more = {} if content is None else _members(content, redaction)
    return msgspec.json.encode(
        {
            "specversion": SPEC_VERSION,
            "id": event_id(event),
            "source": f"urn:betimes:tenant:{to_text('ten', tenant)}",
            "type": event.type,
            "subject": event.subject,
            "time": shown_instant(event.created_at),
            "datacontenttype": "application/json",
            "severity": severity_of(event.type, event.body).name.lower(),
            "data": {**event.body, **more},
        }
    )


def _members(content: Content, redaction: Redaction) -> dict[str, Any]:
    """Payload, result and error of a run; what would make the body too large is left out."""
    parts = {
        "payload": content.payload,
        "result": content.result,
        "error": None if content.error is None else content.error.encode(),
    }
    told: dict[str, Any] = {}
    left_out: list[str] = []
    room = CONTENT_BYTES_MAX
    for name, part in parts.items():
        if part is None:
            continue
        if len(part) > room:
            left_out.append(name)
            continue
        room -= len(part)
        told[name] = redaction.json(shown_bytes(part))
    return {**told, "left_out": left_out} if left_out else told


def notice_of(event: EventRow) -> Notice:
    """A line and facts."""
    known = CATALOGUE.get(event.type)
    return Notice(
        title=_title(event),
        severity=severity_of(event.type, event.body),
        facts=dict(_facts(event.body)),
        says="" if known is None else known.says,
        at=shown_instant(event.created_at),
    )


def _title(event: EventRow) -> str:
    body = event.body
    if event.type in (FIRING, RESOLVED):
        return f"{event.type}: {body.get('rule')} ({body.get('name') or body.get('subject')})"
    name = body.get("name") or body.get("handler") or event.subject
    return f"{event.type}: {_plain(name)}"


def _facts(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    left = FACTS_MAX
    for name, value in body.items():
        if name in NOT_FOR_PEOPLE or value is None or value in ("", []):
            continue
        if not left:
            return
        left -= 1
        yield name.replace("_", " "), _plain(value)


def _plain(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    # One line, and nothing that a terminal or a header would take for a command.
    return "".join(one if one.isprintable() else " " for one in text)[:VALUE_LENGTH_MAX]
