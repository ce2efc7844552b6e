"""Events as they are shown, and as streams send them."""

import msgspec

from betimes.api.call import encode
from betimes.domain.ids import to_text
from betimes.ops.trail import EventRow
from betimes.wire import more as wire
from betimes.wire.base import shown_instant


def shown_event(event: EventRow) -> wire.Event:
    """An event as it is shown."""
    return wire.Event(
        id=to_text("evt", event.id),
        type=event.type,
        subject=event.subject,
        at=shown_instant(event.created_at),
        data=dict(event.body),
    )


def event_piece(event: EventRow) -> bytes:
    """An event as a piece of a stream."""
    shown = shown_event(event)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        shown.id.encode(),
        shown.type.encode(),
        encode(msgspec.to_builtins(shown)),
    )
