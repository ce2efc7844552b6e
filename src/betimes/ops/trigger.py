"""An event at will: so that whoever is to be told can be tried before something happens."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from betimes.domain.errors import Invalid, TooLarge
from betimes.domain.event import CATALOGUE
from betimes.domain.ids import ShardId, TenantId, random_ids, to_ms
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store.audit import EventRow
from betimes.store.deliveries import tell
from betimes.store.pool import Connection

__all__ = ["EventRow", "body_of", "trigger"]

MARK = "is_test"
BODY_BYTES_MAX = 16 * 1024
SHARD = ShardId(0)


def body_of(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """What such an event tells: its example with `data` laid over it, and the mark of a test.

    Raises:
        Invalid: there is no such type.
        TooLarge: it would tell too much.

    """
    known = CATALOGUE.get(kind)
    if known is None:
        raise Invalid(
            f"expected a type of event such as run.dead, got {kind[:60]!r}; "
            "GET /v1/event-types lists them",
            pointer="/type",
        )
    body = {**known.example, **data, MARK: True}
    size = len(msgspec.json.encode(body))
    if size > BODY_BYTES_MAX:
        raise TooLarge(f"expected at most {BODY_BYTES_MAX} bytes, got {size}", pointer="/data")
    return body


async def trigger(
    desk: Desk,
    tenant: TenantId,
    kind: str,
    *,
    subject: str,
    body: Mapping[str, Any],
    request: str,
) -> EventRow:
    """Write an event as if it had happened; the same one for the same request."""
    digest = blake2b(f"{tenant}{request}".encode(), digest_size=TAIL_BYTES).digest()
    (event,) = random_ids(to_ms(desk.clock.now()), SHARD, digest)

    async def work(connection: Connection) -> EventRow:
        at = await desk.now(connection)
        await tell(connection, tenant, kind, event=event, subject=subject, body=body, now=at)
        return EventRow(id=event, type=kind, subject=subject, body=body, created_at=at)

    return await desk.transact(work, tenant=tenant)
