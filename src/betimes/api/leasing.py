"""Lease tokens: what a worker holds, in a text that only we can write."""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from uuid import UUID

from betimes.api.problem import Trouble
from betimes.domain.ids import Fence, ParcelId, RunId, TenantId, WorkerId
from betimes.ops.workers import HeldLease

PREFIX = "lea_"
LAYOUT = struct.Struct(">16s16s16sIHQB")
SEAL_BYTES = 16
TOKEN_BYTES = LAYOUT.size + SEAL_BYTES


def write_token(secret: bytes, tenant: TenantId, lease: HeldLease) -> str:
    """The token of a lease, good for its tenant only."""
    body = LAYOUT.pack(
        lease.run.bytes,
        lease.parcel.bytes,
        lease.worker.bytes,
        lease.fence,
        lease.attempt,
        lease.started_us,
        lease.plain,
    )
    return PREFIX + urlsafe_b64encode(body + _seal(secret, tenant, body)).decode().rstrip("=")


def read_token(secret: bytes, tenant: TenantId, text: str) -> HeldLease:
    """What a token stands for; anything that is not one of the tenant's is a lost lease."""
    raw = text.removeprefix(PREFIX)
    try:
        data = urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
    except ValueError:
        data = b""
    body, seal = data[: LAYOUT.size], data[LAYOUT.size :]
    good = len(data) == TOKEN_BYTES and hmac.compare_digest(seal, _seal(secret, tenant, body))
    if not text.startswith(PREFIX) or not good:
        raise Trouble("not_found", "there is no such lease", resource_type="lease")
    run, parcel, worker, fence, attempt, started_us, plain = LAYOUT.unpack(body)
    return HeldLease(
        run=RunId(UUID(bytes=run)),
        parcel=ParcelId(UUID(bytes=parcel)),
        worker=WorkerId(UUID(bytes=worker)),
        fence=Fence(fence),
        attempt=attempt,
        started_us=started_us,
        plain=bool(plain),
    )


def _seal(secret: bytes, tenant: TenantId, body: bytes) -> bytes:
    return blake2b(
        tenant.bytes + body, key=secret, digest_size=SEAL_BYTES, person=b"betimes-lease"
    ).digest()
