"""Lease tokens: what a worker holds, in a text that only we can write.

One token stands for a parcel: many runs, one fence, one seal. A lease of a single run is the token
of its parcel and the run, written beside it: whoever holds a parcel holds all of its runs, so there
is nothing to seal for each of them.

A target that answered `202` holds a token, too. It has no key of the API, so its token names the
tenant and the one run that it may report about, and stands for itself. For whom a token is lies
inside its seal, so that nobody makes one that needs no key out of one that does. So does the queue,
by a digest, so that a key that is bound to queues reports about no others.
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
from betimes.domain.errors import Invalid
from betimes.domain.ids import (
    Fence,
    ParcelId,
    RunId,
    ShardId,
    TenantId,
    WorkerId,
    from_text,
    to_text,
)
from betimes.domain.scopes import Scope
from betimes.ops.keys import Caller
from betimes.ops.workers import HeldLease, ParcelLease

PREFIX = "lea_"
RUN, RUN_MARK = "run", "."
LAYOUT = struct.Struct(">B16s16sIHQBH8s")
ID_BYTES = 16
SEAL_BYTES = 16
QUEUE_BYTES = 8
TOKEN_BYTES = LAYOUT.size + SEAL_BYTES
OWN_BYTES = 2 * ID_BYTES + TOKEN_BYTES
WORKERS, TARGETS = 1, 2
"""For whom a token is: a worker shows it beside its key, a target has nothing else."""


def write_parcel_token(secret: bytes, tenant: TenantId, lease: ParcelLease, *, queue: str) -> str:
    """The token of a parcel, good for its tenant only, and only beside a key."""
    body = _body(WORKERS, lease, queue)
    return PREFIX + _text(body + _seal(secret, tenant.bytes + body))


def with_run(token: str, run: RunId) -> str:
    """The lease of one run, by the token of its parcel."""
    return f"{token}{RUN_MARK}{to_text(RUN, run)}"


def write_own_token(secret: bytes, tenant: TenantId, lease: HeldLease, *, queue: str) -> str:
    """The token of a target, about one run: it needs no key beside it."""
    body = tenant.bytes + lease.run.bytes + _body(TARGETS, lease.held, queue)
    return PREFIX + _text(body + _seal(secret, body))


def read_parcel_token(
    secret: bytes, tenant: TenantId, text: str, *, queues: Collection[str] | None = None
) -> ParcelLease:
    """What the token of a parcel stands for; anything that is not one of the tenant's is lost.

    `queues` are those that the key beside it is bound to, if it is.
    """
    data = _data(text)
    if len(data) != TOKEN_BYTES:
        raise _lost()
    return _read(WORKERS, data, _seal(secret, tenant.bytes + data[: LAYOUT.size]), queues)


def read_token(
    secret: bytes, tenant: TenantId, text: str, *, queues: Collection[str] | None = None
) -> HeldLease:
    """What the lease of one run stands for, a worker's or a target's."""
    token, mark, run = text.partition(RUN_MARK)
    if mark:
        held = read_parcel_token(secret, tenant, token, queues=queues)
        try:
            return held.of(RunId(from_text(RUN, run)))
        except Invalid:
            raise _lost() from None
    data = _data(text)
    if len(data) != OWN_BYTES or not data.startswith(tenant.bytes):
        raise _lost()
    lease = _read(TARGETS, data[2 * ID_BYTES :], _seal(secret, data[:-SEAL_BYTES]), queues)
    return lease.of(RunId(UUID(bytes=data[ID_BYTES : 2 * ID_BYTES])))


def _read(kind: int, data: bytes, seal: bytes, queues: Collection[str] | None) -> ParcelLease:
    if not hmac.compare_digest(data[LAYOUT.size :], seal):
        raise _lost()
    written, parcel, worker, fence, attempt, started_us, plain, shard, queue = LAYOUT.unpack(
        data[: LAYOUT.size]
    )
    if written != kind or (queues is not None and queue not in map(_tag, queues)):
        raise _lost()
    return ParcelLease(
        parcel=ParcelId(UUID(bytes=parcel)),
        worker=WorkerId(UUID(bytes=worker)),
        fence=Fence(fence),
        attempt=attempt,
        started_us=started_us,
        plain=bool(plain),
        shard=ShardId(shard),
    )


def held_lease(call: Call[Any, Any], text: str) -> HeldLease:
    """What a lease of a run stands for, as far as the caller's key reaches."""
    return read_token(call.service.lease_secret, call.tenant, text, queues=call.caller.queues)


def holder_of(secret: bytes, text: str) -> Caller | None:
    """Who holds a token that needs no key; None for any other, a worker's among them."""
    data = _data(text)
    if len(data) != OWN_BYTES:
        return None
    tenant = TenantId(UUID(bytes=data[:ID_BYTES]))
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


def _body(kind: int, lease: ParcelLease, queue: str) -> bytes:
    return LAYOUT.pack(
        kind,
        lease.parcel.bytes,
        lease.worker.bytes,
        lease.fence,
        lease.attempt,
        lease.started_us,
        lease.plain,
        lease.shard,
        _tag(queue),
    )


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _data(text: str) -> bytes:
    raw = text.removeprefix(PREFIX)
    return b"" if raw == text else _bytes(raw)


def _bytes(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def _seal(secret: bytes, body: bytes) -> bytes:
    return blake2b(body, key=secret, digest_size=SEAL_BYTES, person=b"betimes-lease").digest()
