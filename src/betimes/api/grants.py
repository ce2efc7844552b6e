"""Grants: who holds one may read one blob until it expires, without a key.

A grant names a tenant, a blob, an end and who gave it, sealed under a secret of the service. It is
worth nothing for anything else, and nobody has to remember it. It ends with the key that gave it.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from uuid import UUID

from betimes.api.problem import Trouble
from betimes.domain.ids import TenantId

PREFIX = "gra_"
ID_BYTES, TIME_BYTES, SEAL_BYTES = 16, 8, 16
NAMED_BYTES = 2 * ID_BYTES + TIME_BYTES
"""Of what comes before the name of who gave it."""
BY_BYTES_MAX = 64


@dataclass(frozen=True, slots=True)
class Grant:
    """What may be read, and until when."""

    tenant: TenantId
    blob: UUID
    until: datetime
    by: str
    """The key or the member that gave it."""


def write_grant(secret: bytes, grant: Grant) -> str:
    """A grant as text that can stand in a URL."""
    seconds = int(grant.until.timestamp())
    body = grant.tenant.bytes + grant.blob.bytes + seconds.to_bytes(TIME_BYTES) + grant.by.encode()
    return PREFIX + urlsafe_b64encode(body + _seal(secret, body)).decode().rstrip("=")


def read_grant(secret: bytes, text: str, *, now: datetime) -> Grant:
    """The grant, if it is one of ours and not over; otherwise there is nothing here."""
    try:
        data = urlsafe_b64decode(text.removeprefix(PREFIX) + "==")
    except (BadBase64, ValueError):
        data = b""
    body, seal = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
    fits = NAMED_BYTES < len(body) <= NAMED_BYTES + BY_BYTES_MAX
    good = fits and hmac.compare_digest(seal, _seal(secret, body))
    if not (good and text.startswith(PREFIX)):
        raise _nothing()
    until = datetime.fromtimestamp(int.from_bytes(body[2 * ID_BYTES : NAMED_BYTES]), UTC)
    if until <= now:
        raise _nothing()
    tenant, blob = UUID(bytes=body[:ID_BYTES]), UUID(bytes=body[ID_BYTES : 2 * ID_BYTES])
    return Grant(TenantId(tenant), blob, until, body[NAMED_BYTES:].decode())


def _nothing() -> Trouble:
    return Trouble("not_found", "there is no such grant, or it is over", resource_type="grant")


def _seal(secret: bytes, body: bytes) -> bytes:
    return blake2b(body, key=secret, digest_size=SEAL_BYTES, person=b"betimes-grant").digest()
