"""From outboxes of other databases to the service: nothing lost, nothing doubled."""

from betimes.relay.outboxes import Outbox, Row, outbox_at
from betimes.relay.service import Relay

__all__ = ["Outbox", "Relay", "Row", "outbox_at"]
