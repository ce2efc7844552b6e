"""Lease tokens: what a worker holds, in a text that only we can write.

A target that answered `202` holds one, too. It has no key of the API, so its token names the tenant
and stands for itself: it may report about that one attempt, and nothing else.
"""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from uuid import UUID

from betimes.api.problem import Trouble
from betimes.domain.ids import Fence, ParcelId, RunId, TenantId, WorkerId
from betimes.domain.scopes import Scope
from betimes.ops.keys import Caller
from betimes.ops.workers import HeldLease

PREFIX = "lea_"
LAYOUT = struct.Struct(">16s16s16sIHQB")
TENANT_BYTES = 16
SEAL_BYTES = 16
TOKEN_BYTES = LAYOUT.size + SEAL_BYTES


def write_token(secret: bytes, tenant: TenantId, lease: HeldLease) -> str:
    """The token of a lease, good for its tenant only."""
    return _text(_body(lease) + _seal(secret, tenant, _body(lease)))


def write_own_token(secret: bytes, tenant: TenantId, lease: HeldLease) -> str:
    """The same for a target: it needs no key beside it."""
    return _text(tenant.bytes + _body(lease) + _seal(secret, tenant, _body(lease)))


def read_token(secret: bytes, tenant: TenantId, text: str) -> HeldLease:
    """What a token stands for; anything that is not one of the tenant's is a lost lease."""
    data = _data(text)
    if len(data) == TENANT_BYTES + TOKEN_BYTES and data.startswith(tenant.bytes):
        data = data[TENANT_BYTES:]
    body, seal = data[: LAYOUT.size], data[LAYOUT.size :]
    good = len(data) == TOKEN_BYTES and hmac.compare_digest(seal, _seal(secret, tenant, body))
    if not good:
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


def holder_of(secret: bytes, text: str) -> Caller | None:
    """Who holds a token that needs no key; None for any other."""
    data = _data(text)
    if len(data) != TENANT_BYTES + TOKEN_BYTES:
        return None
    tenant = TenantId(UUID(bytes=data[:TENANT_BYTES]))
    try:
        lease = read_token(secret, tenant, text)
    except Trouble:
        return None
    return Caller(
        key=str(lease.run),
        name="target",
        kind="lease",
        tenant=tenant,
        slug="",
        timezone="UTC",
        scopes=frozenset({Scope.WORKERS_LEASE}),
        queues=None,
        expires_at=None,
        quotas={},
        settings={},
        via="lease",
    )


def _body(lease: HeldLease) -> bytes:
    return LAYOUT.pack(
        lease.run.bytes,
        lease.parcel.bytes,
        lease.worker.bytes,
        lease.fence,
        lease.attempt,
        lease.started_us,
        lease.plain,
    )


def _text(data: bytes) -> str:
    return PREFIX + urlsafe_b64encode(data).decode().rstrip("=")


def _data(text: str) -> bytes:
    raw = text.removeprefix(PREFIX)
    if raw == text:
        return b""
    try:
        return urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
    except ValueError:
        return b""


def _seal(secret: bytes, tenant: TenantId, body: bytes) -> bytes:
    return blake2b(
        tenant.bytes + body, key=secret, digest_size=SEAL_BYTES, person=b"betimes-lease"
    ).digest()
