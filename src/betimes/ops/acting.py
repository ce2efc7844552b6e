"""Acts: a verb, its answer, its audit row, its event and its idempotency key in one transaction."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from betimes.domain.errors import Bug
from betimes.domain.ids import ShardId, TenantId, random_ids, to_ms
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.idempotency import IdempotencyKey, Once, once
from betimes.store.audit import Act, append, is_noted
from betimes.store.hints import LaterHints
from betimes.store.idempotency import Answer
from betimes.store.pool import Connection

__all__ = ["Answer", "Intent", "Told", "act"]

T = TypeVar("T")
FIRST_SHARD = ShardId(0)


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to do what, and whether only to try."""

    tenant: TenantId
    actor: Mapping[str, Any]
    action: str
    request_id: str
    key: IdempotencyKey | None = None
    only_try: bool = False
    as_system: bool = False


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it: the answer, and what audit and event log say about it."""

    answer: Answer
    resource: str
    shard: ShardId = FIRST_SHARD
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    event: str | None = None
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    changed: bool = True


class _Undo(Exception):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


async def act(
    desk: Desk,
    intent: Intent,
    verb: Callable[[Desk], Awaitable[T]],
    tell: Callable[[T], Told],
) -> Once[T]:
    """Do it once, and write down that it was done. Whatever is refused leaves no trace."""
    deed = Deed(desk, intent, verb, tell)
    if intent.only_try:
        return await _tried(desk, deed)
    if intent.key is not None:
        done = await once(desk, intent.tenant, intent.key, deed.do, deed.answer_of)
        value = None if done.value is None else done.value[0]
        return Once(value=value, answer=done.answer, replayed=done.replayed)
    value, told = await deed.alone()
    return Once(value=value, answer=told.answer, replayed=False)


class Deed:
    """One act on its way; it may be repeated when the reply of its commit was lost."""

    def __init__(
        self,
        desk: Desk,
        intent: Intent,
        verb: Callable[[Desk], Awaitable[T]],
        tell: Callable[[T], Told],
    ) -> None:
        self._desk = desk
        self._intent = intent
        self._verb = verb
        self._tell = tell
        self._hints = LaterHints()
        self._began_at = desk.clock.now()
        self._tries = 0

    async def _is_noted(self, connection: Connection) -> bool:
        """Whether an earlier try was committed after all; the first one need not ask."""
        if self._tries == 1:
            return False
        request = self._intent.request_id
        return await is_noted(connection, self._intent.tenant, request, since=self._began_at)

    async def do(self, inner: Desk) -> tuple[Any, Told]:
        """The verb and its audit row, inside a transaction that is open."""
        if inner.connection is None:
            raise Bug("an act needs a desk inside a transaction")
        self._tries += 1
        value = await self._verb(inner)
        told = self._tell(value)
        if told.changed and not await self._is_noted(inner.connection):
            await self._note(inner.connection, told)
        return value, told

    @property
    def tenant(self) -> TenantId | None:
        """As whom it is done; None means the service itself."""
        return None if self._intent.as_system else self._intent.tenant

    @staticmethod
    def answer_of(pair: tuple[Any, Told]) -> Answer:
        """What is kept with the idempotency key."""
        return pair[1].answer

    async def alone(self) -> tuple[Any, Told]:
        """The same in a transaction of its own."""
        done = await self._desk.transact(self._work, tenant=self.tenant)
        self._hints.pass_on(self._desk.hints)
        return done

    async def _work(self, connection: Connection) -> tuple[Any, Told]:
        self._hints.clear()
        return await self.do(self._desk.inside(connection, self._hints))

    async def attempt(self, connection: Connection) -> None:
        """Do it only to see what would come of it."""
        self._hints.clear()
        _, told = await self.do(self._desk.inside(connection, self._hints))
        raise _Undo(told.answer)

    async def _note(self, connection: Connection, told: Told) -> None:
        now = self._desk.clock.now()
        intent = self._intent
        (event_id,) = random_ids(to_ms(now), told.shard, self._desk.entropy(TAIL_BYTES))
        await append(
            connection,
            told.shard,
            Act(
                tenant=intent.tenant,
                at=now,
                actor=intent.actor,
                action=intent.action,
                resource=told.resource,
                request_id=intent.request_id,
                before=told.before,
                after=told.after,
            ),
            event=told.event,
            event_id=event_id,
            event_body=told.details,
        )


async def _tried(desk: Desk, deed: Deed) -> Once[Any]:
    try:
        await desk.transact(deed.attempt, tenant=deed.tenant)
    except _Undo as undone:
        return Once(value=None, answer=undone.answer, replayed=False)
    raise Bug("a trial was committed")
