"""Requests that come twice have one effect and one answer.

The key lives in the shard its own digest names, so that the same key always meets itself, whatever
it guards. Things without a name of their own belong into that shard, too: `shard_of_idempotency`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Generic, TypeVar

from betimes.domain.errors import IdempotencyMismatch, Invalid
from betimes.domain.ids import ShardId, TenantId, shard_of_key
from betimes.ops.desk import Desk
from betimes.store.hints import LaterHints
from betimes.store.idempotency import Answer, Claim, answer_key, claim_key, read_key
from betimes.store.pool import Connection

T = TypeVar("T")
KEY_LENGTH_MAX = 255
KEEP_FOR = timedelta(hours=24)
KEEP_FOR_MAX = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """The key of a request and what the request was, as a digest.

    Kept for at least a day: the days of the table stand in for uniqueness only that long.
    """

    key: str
    fingerprint: bytes
    keep_for: timedelta = KEEP_FOR

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= KEY_LENGTH_MAX or not self.key.isprintable():
            raise Invalid(
                f"expected an idempotency key of 1-{KEY_LENGTH_MAX} printable characters, "
                f"got {len(self.key)}",
                code="idempotency_key_invalid",
            )
        if not KEEP_FOR <= self.keep_for <= KEEP_FOR_MAX:
            raise Invalid(f"expected to keep a key for 1-30 days, got {self.keep_for}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Once(Generic[T]):
    """What a guarded request did: the value it just made, or the answer it was given before."""

    value: T | None
    answer: Answer
    replayed: bool


def fingerprint_of(*parts: str | bytes) -> bytes:
    """A digest of method, route and canonical body; lengths keep the parts apart."""
    digest = sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


def shard_of_idempotency(desk: Desk, tenant: TenantId, key: str) -> ShardId:
    """Where a key lives, and what it makes if that has no name of its own."""
    return shard_of_key(desk.shards, str(tenant), key)


async def answered(desk: Desk, tenant: TenantId, key: IdempotencyKey) -> Answer | None:
    """What the same request was answered before, if it was."""

    async def work(connection: Connection) -> Answer | None:
        found = await read_key(connection, _claim(desk, tenant, key, await desk.now(connection)))
        return None if found is None or found.fingerprint != key.fingerprint else found.answer

    return await desk.transact(work, tenant=tenant)


async def keep_refusal(
    desk: Desk, tenant: TenantId, key: IdempotencyKey, refusal: Answer
) -> Answer | None:
    """Keep what a request was refused with; if it was answered before, that answer instead."""

    async def work(connection: Connection) -> Answer | None:
        claim = _claim(desk, tenant, key, await desk.now(connection))
        before = await claim_key(connection, claim)
        if before is None:
            await answer_key(connection, claim, refusal)
            return None
        return before.answer if before.fingerprint == key.fingerprint else None

    return await desk.transact(work, tenant=tenant)


def _claim(desk: Desk, tenant: TenantId, key: IdempotencyKey, now: datetime) -> Claim:
    return Claim(
        shard=shard_of_idempotency(desk, tenant, key.key),
        tenant=tenant,
        key=key.key,
        fingerprint=key.fingerprint,
        now=now,
        expires_at=now + key.keep_for,
    )


async def once(
    desk: Desk,
    tenant: TenantId,
    key: IdempotencyKey,
    verb: Callable[[Desk], Awaitable[T]],
    tell: Callable[[T], Answer],
) -> Once[T]:
    """Run a verb and keep its answer in one transaction, or return the answer it had before.

    The verb is given a desk inside the transaction; its hints leave after the commit. Whatever it
    refuses is not kept here: the key is free again, unless `keep_refusal` takes it.

    Raises:
        IdempotencyMismatch: the key was used for another request.
        Conflict: the first request with this key is still running.

    """
    hints = LaterHints()

    async def guarded(connection: Connection) -> Once[T]:
        claim = _claim(desk, tenant, key, await desk.now(connection))
        before = await claim_key(connection, claim)
        if before is None:
            hints.clear()
            value = await verb(desk.inside(connection, hints))
            answer = tell(value)
            await answer_key(connection, claim, answer)
            return Once(value=value, answer=answer, replayed=False)
        if before.fingerprint != key.fingerprint:
            raise IdempotencyMismatch(
                "expected the same request as before with this idempotency key, got another one"
            )
        return Once(value=None, answer=before.answer, replayed=True)

    done = await desk.transact(guarded, tenant=tenant)
    hints.pass_on(desk.hints)
    return done
