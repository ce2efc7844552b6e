"""Group commit: acts that different callers ask for at the same time share one transaction.

A commit costs one flush to disk, whatever is in it. Creations of one tenant that come while a
group of that tenant is on its way are collected and go with its next one: jobs or runs, their
idempotency keys with the answers, their audit rows and events, all in a handful of statements. The
next one begins when everything is written and only the flush is waited for, or as soon as enough
have come to be worth a transaction: then this process prepares one group while the database writes
the other. Two small ones would only halve each other. Groups of different tenants go side by side.
An idle system adds no delay. When anything about a group is refused, each of its members goes alone
and gets the answer it would have had anyway.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from betimes.domain.errors import SchedulerError
from betimes.domain.ids import ShardId, TenantId, random_ids, to_ms
from betimes.ops.acting import Answer, Intent, Told, act
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.idempotency import IdempotencyKey, Once, shard_of_idempotency
from betimes.store.audit import Act, Telling
from betimes.store.groups import ChainBegun, keep_group
from betimes.store.hints import LaterHints
from betimes.store.idempotency import Claim, insert_answered
from betimes.store.pool import Connection

T = TypeVar("T")
V = TypeVar("V")

ITEMS_MAX = 200
COMMITS_MAX = 6
GROUPS_MAX = 2
"""How many groups of one tenant may be written at a time."""
WORTH_A_GROUP = 16
"""So many do not wait until the group before them is written."""

Make = Callable[[Desk, TenantId, Sequence[Any], ShardId], Awaitable[Sequence[Any]]]
"""Makes all the things of a group in one shard, in the order given."""


class _Taken(Exception):
    """A key of the group was used before."""


@dataclass(slots=True)
class Waiting:
    """Somebody who waits for the commit of a group."""

    item: Any
    intent: Intent
    key: IdempotencyKey
    tell: Callable[[Any], Told]
    answer: "asyncio.Future[Answer | None]"


@dataclass(slots=True)
class Batch:
    """Those of one tenant who go together."""

    waiting: list[Waiting] = field(default_factory=list)


class Together(Generic[T, V]):
    """Collects single creations per tenant; `run` is its loop and belongs into a TaskGroup."""

    def __init__(
        self,
        *,
        desk: Desk,
        make: Make,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """`failed` hears of mistakes of ours that made the members of a group go alone."""
        self._desk = desk
        self._failed = failed
        self._make = make
        self._batches: dict[TenantId, Batch] = {}
        self._changed = asyncio.Event()
        self._free = asyncio.Semaphore(COMMITS_MAX)
        self._writing: dict[TenantId, list[list[Waiting]]] = {}
        """The groups of each tenant that are being written."""
        self._running = False
        self.commits = 0
        self.items = 0

    async def act(
        self,
        item: T,
        intent: Intent,
        verb: Callable[[Desk], Awaitable[V]],
        tell: Callable[[V], Told],
    ) -> Once[V]:
        """The same as `acting.act`, with company if there is any."""
        if intent.key is None or intent.only_try or not self._running:
            return await act(self._desk, intent, verb, tell)
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        batch = self._batches.setdefault(intent.tenant, Batch())
        batch.waiting.append(Waiting(item, intent, intent.key, tell, answer))
        self._changed.set()
        told = await answer
        if told is None:
            return await act(self._desk, intent, verb, tell)
        return Once(value=None, answer=told, replayed=False)

    async def run(self) -> None:
        """Commit groups until cancelled; whoever still waits then goes alone."""
        self._running = True
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._changed.wait()
                    await self._free.acquire()
                    if batch := self._take():
                        group.create_task(self._commit(*batch))
                    else:
                        self._free.release()
        finally:
            self._running = False
            for batch_left in self._batches.values():
                _release(batch_left.waiting, None)

    def _take(self) -> tuple[TenantId, list[Waiting]] | None:
        """Those of the tenant that has waited longest, as many as one transaction may hold."""
        tenant = next((one for one in self._batches if self._may_begin(one)), None)
        if tenant is None:
            self._changed.clear()
            return None
        batch = self._batches.pop(tenant)
        if len(batch.waiting) > ITEMS_MAX:
            self._batches[tenant] = Batch(batch.waiting[ITEMS_MAX:])
        taken = batch.waiting[:ITEMS_MAX]
        self._writing.setdefault(tenant, []).append(taken)
        return tenant, taken

    def _may_begin(self, tenant: TenantId) -> bool:
        under_way = len(self._writing.get(tenant, ()))
        enough = len(self._batches[tenant].waiting) >= WORTH_A_GROUP
        return not under_way or (under_way < GROUPS_MAX and enough)

    async def _commit(self, tenant: TenantId, waiting: list[Waiting]) -> None:
        keys = [one.key.key for one in waiting]
        try:
            if len(set(keys)) < len(keys):
                return  # the same key twice: the plain way decides
            group = Group(
                self._desk, tenant, waiting, self._make, lambda: self._next(tenant, waiting)
            )
            answers = await self._desk.transact(group.work, tenant=tenant, row_by_row=True)
            group.hints.pass_on(self._desk.hints)
            self.commits += 1
            self.items += len(waiting)
            for one, answer in zip(waiting, answers, strict=True):
                _release([one], answer)
        except Exception as error:  # noqa: BLE001 -- each goes alone, and gets its own error
            # Whatever it was, it is one member's fault, and the loop is everybody's.
            if self._failed is not None and not isinstance(error, (SchedulerError, _Taken)):
                self._failed(error)
        finally:
            _release(waiting, None)
            self._next(tenant, waiting)
            self._free.release()

    def _next(self, tenant: TenantId, group: list[Waiting]) -> None:
        """Let the next group of a tenant begin, unless it has."""
        groups = self._writing.get(tenant, [])
        left = [one for one in groups if one is not group]
        if len(left) < len(groups):
            self._writing[tenant] = left
            if not left:
                del self._writing[tenant]
            self._changed.set()


class Group:
    """One transaction for many."""

    def __init__(
        self,
        desk: Desk,
        tenant: TenantId,
        waiting: Sequence[Waiting],
        make: Make,
        written: Callable[[], None],
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._waiting = waiting
        self._make = make
        self._written = written
        # One alone lies beside its key; several share a shard, and few parcels carry their runs.
        self._shard = (
            shard_of_idempotency(desk, tenant, waiting[0].key.key)
            if len(waiting) == 1
            else desk.next_shard()
        )
        self._tried = False
        self.hints = LaterHints()

    async def work(self, connection: Connection) -> list[Answer]:
        """Everything they asked for, or nothing."""
        if self._tried:
            raise _Taken  # a second try cannot tell its own keys from others'
        self._tried = True
        inner = self._desk.inside(connection, self.hints, at=await self._desk.now(connection))
        items = [one.item for one in self._waiting]
        values = await self._make(inner, self._tenant, items, self._shard)
        tolds = [one.tell(value) for one, value in zip(self._waiting, values, strict=True)]
        try:
            kept = await self._keep(connection, tolds, await inner.now(connection))
        except ChainBegun:
            self._tried = False  # nothing was committed: the same group goes once more
            raise
        if not kept:
            raise _Taken
        self._written()
        return [told.answer for told in tolds]

    async def _keep(self, connection: Connection, tolds: Sequence[Told], now: datetime) -> bool:
        """Keys with their answers, acts and events."""
        claims = self._claims(now)
        answers = [told.answer for told in tolds]
        tellings = self._tellings(tolds)
        if not tellings:
            return await insert_answered(connection, claims, answers)
        return await keep_group(connection, self._tenant, self._shard, claims, answers, tellings)

    def _claims(self, now: datetime) -> list[Claim]:
        return [
            Claim(
                shard=shard_of_idempotency(self._desk, self._tenant, one.key.key),
                tenant=self._tenant,
                key=one.key.key,
                fingerprint=one.key.fingerprint,
                now=now,
                expires_at=now + one.key.keep_for,
            )
            for one in self._waiting
        ]

    def _tellings(self, tolds: Sequence[Told]) -> list[Telling]:
        now = self._desk.clock.now()
        entropy = self._desk.entropy(len(tolds) * TAIL_BYTES)
        return [
            Telling(
                Act(
                    tenant=self._tenant,
                    at=now,
                    actor=one.intent.actor,
                    action=one.intent.action,
                    resource=told.resource,
                    request_id=one.intent.request_id,
                    before=told.before,
                    after=told.after,
                ),
                told.event,
                event_id,
                told.details,
            )
            for one, told, event_id in zip(
                self._waiting, tolds, random_ids(to_ms(now), self._shard, entropy), strict=True
            )
            if told.changed  # what a dedupe key has recognised changes nothing
        ]


def _release(waiting: Sequence[Waiting], answer: Answer | None) -> None:
    for one in waiting:
        if not one.answer.done():
            one.answer.set_result(answer)
