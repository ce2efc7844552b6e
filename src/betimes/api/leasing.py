"""Lease tokens: what a worker holds, in a text that only we can write.

A target that answered `202` holds one, too. It has no key of the API, so its token names the tenant
and stands for itself: it may report about that one attempt, and nothing else. For whom a token is
lies inside its seal, so that nobody makes one that needs no key out of one that does. So does the
queue, by a digest, so that a key that is bound to queues reports about no others.
"""

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID

from betimes.api.call import Call
from betimes.api.problem import Trouble
from betimes.domain.ids import Fence, ParcelId, RunId, TenantId, WorkerId
from betimes.domain.scopes import Scope
from betimes.ops.keys import Caller
from betimes.ops.workers import HeldLease

PREFIX = "lea_"
LAYOUT = struct.Struct(">B16s16s16sIHQB8s")
TENANT_BYTES = 16
SEAL_BYTES = 16
QUEUE_BYTES = 8
TOKEN_BYTES = LAYOUT.size + SEAL_BYTES
WORKERS, TARGETS = 1, 2
"""For whom a token is: a worker shows it beside its key, a target has nothing else."""


def write_token(secret: bytes, tenant: TenantId, lease: HeldLease, *, queue: str) -> str:
    """The token of a lease, good for its tenant only, and only beside a key."""
    body = _body(WORKERS, lease, queue)
    return _text(body + _seal(secret, tenant, body))


def write_own_token(secret: bytes, tenant: TenantId, lease: HeldLease, *, queue: str) -> str:
    """The same for a target: it needs no key beside it."""
    body = _body(TARGETS, lease, queue)
    return _text(tenant.bytes + body + _seal(secret, tenant, body))


def read_token(
    secret: bytes, tenant: TenantId, text: str, *, queues: Collection[str] | None = None
) -> HeldLease:
    """What a token stands for; anything that is not one of the tenant's is a lost lease.

    `queues` are those that the key beside it is bound to, if it is.
    """
    data, kind = _data(text), WORKERS
    if len(data) == TENANT_BYTES + TOKEN_BYTES and data.startswith(tenant.bytes):
        data, kind = data[TENANT_BYTES:], TARGETS
    body, seal = data[: LAYOUT.size], data[LAYOUT.size :]
    good = len(data) == TOKEN_BYTES and hmac.compare_digest(seal, _seal(secret, tenant, body))
    if not good:
        raise _lost()
    written, run, parcel, worker, fence, attempt, started_us, plain, queue = LAYOUT.unpack(body)
    if written != kind or (queues is not None and queue not in map(_tag, queues)):
        raise _lost()
    return HeldLease(
        run=RunId(UUID(bytes=run)),
        parcel=ParcelId(UUID(bytes=parcel)),
        worker=WorkerId(UUID(bytes=worker)),
        fence=Fence(fence),
        attempt=attempt,
        started_us=started_us,
        plain=bool(plain),
    )


def held_lease(call: Call[Any, Any], text: str) -> HeldLease:
    """What a token stands for, as far as the caller's key reaches."""
    return read_token(call.service.lease_secret, call.tenant, text, queues=call.caller.queues)


def holder_of(secret: bytes, text: str) -> Caller | None:
    """Who holds a token that needs no key; None for any other, a worker's among them."""
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


def _lost() -> Trouble:
    return Trouble("not_found", "there is no such lease", resource_type="lease")


@lru_cache(maxsize=1_000)
def _tag(queue: str) -> bytes:
    """What stands for a queue in a token, whose length does not depend on names."""
    return blake2b(queue.encode(), digest_size=QUEUE_BYTES, person=b"betimes-queue").digest()


def _body(kind: int, lease: HeldLease, queue: str) -> bytes:
    return LAYOUT.pack(
        kind,
        lease.run.bytes,
        lease.parcel.bytes,
        lease.worker.bytes,
        lease.fence,
        lease.attempt,
        lease.started_us,
        lease.plain,
        _tag(queue),
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
