"""The worker as a role of a node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from betimes.app.delivery import delivering
from betimes.app.desk import desk_of
from betimes.app.listening import listener
from betimes.app.masters import opening_vault
from betimes.app.node import Node
from betimes.app.shelves import shelf_of
from betimes.domain.ids import (
    TAIL_BYTES,
    JobId,
    RunId,
    TenantId,
    WorkerId,
    from_text,
    random_ids,
    to_ms,
)
from betimes.ops.blobs import keep_blob, new_blob, read_reference
from betimes.ops.contents import Contents
from betimes.ops.shelf import Shelf
from betimes.ops.workflow_target import TYPE as WORKFLOW
from betimes.ops.workflow_target import follow_workflow
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.hints import NO_HINTS, Hinter, Hints, NoHints
from betimes.store.pool import Lane
from betimes.store.workers import WorkerCard
from betimes.target.definition import TYPE as HTTP
from betimes.worker import Chance, Handlers, Worker
from betimes.worker.context import Context
from betimes.worker.handlers import Function
from betimes.worker.hints import CHANNEL
from betimes.worker.service import Large, OpenDatabase


class WorkerRole:
    """Leases and executes runs, deliveries to HTTP targets included."""

    def __init__(self, node: Node, handlers: Handlers) -> None:
        self._node = node
        self._handlers = handlers

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop."""
        identity = worker_identity(self._node)
        async with (
            shelf_of(self._node) as shelf,
            delivering(self._node, identity) as (gates, delivery),
            asyncio.TaskGroup() as group,
        ):
            large = await _large(self._node, shelf)
            hints = Hints(database=self._node.database, clock=self._node.clock)
            helpers = [
                group.create_task(gates.run(), name="worker.gates"),
                group.create_task(hints.run(), name="worker.hints"),
            ]
            handlers = self._handlers.also(HTTP, delivery.deliver)
            handlers = handlers.also(WORKFLOW, await _following(self._node, hints, shelf))
            try:
                await make_worker(self._node, identity, handlers, hints, large).run(stopping)
            finally:
                for helper in helpers:
                    helper.cancel()


def worker_identity(node: Node) -> WorkerId:
    """A fresh identity: leases of an earlier life are not its."""
    (identifier,) = random_ids(to_ms(node.clock.now()), 0, node.dice.entropy(TAIL_BYTES))
    return WorkerId(identifier)


def make_worker(
    node: Node,
    identity: WorkerId,
    handlers: Handlers,
    hints: Hinter = NO_HINTS,
    large: Large | None = None,
) -> Worker:
    """A worker of a node."""
    return Worker(
        card=WorkerCard(
            id=identity,
            node=node.card.id,
            name=node.card.name,
            version=node.card.version,
            queues=node.settings.worker.queues,
            handlers=tuple(sorted(handler.name for handler in handlers)),
            slots=node.settings.worker.slots,
        ),
        database=node.database,
        open_database=_opener(node),
        handlers=handlers,
        clock=node.clock,
        chance=Chance(roll=node.dice.roll, entropy=node.dice.entropy),
        settings=node.settings.worker,
        drain_timeout=node.settings.server.drain_timeout,
        telemetry=node.telemetry,
        margin=node.settings.coordinator.margin,
        listen=lambda hear: listener(node, [CHANNEL], hear),
        hints=hints,
        large=large,
    )


async def _following(node: Node, hints: Hinter, shelf: Shelf | None) -> Function:
    """The handler of runs whose target is a workflow."""
    desk = await desk_of(node, hints, vault=await opening_vault(node), shelf=shelf)

    async def follow(context: Context) -> object:
        job = context.job_id
        return await follow_workflow(
            desk,
            context.tenant,
            RunId(from_text("run", context.run_id)),
            attempt=context.attempt,
            job=None if job is None else JobId(from_text("job", job)),
            target=context.target,
            payload=context.payload,
        )

    return follow


async def _large(node: Node, shelf: Shelf | None) -> Large:
    """Payloads and results by reference."""
    desk = await desk_of(node, NoHints(), vault=await opening_vault(node), shelf=shelf)
    retention = node.settings.blobs.results

    async def fetch(tenant: TenantId, reference: str) -> bytes:
        return await read_reference(desk, tenant, reference)

    async def keep(tenant: TenantId, content: bytes) -> str:
        blob = new_blob(desk, content, media_type="application/json", retention=retention)
        return await keep_blob(desk, tenant, blob)

    return Large(fetch=fetch, keep=keep, contents=Contents(desk))


def _opener(node: Node) -> OpenDatabase:
    settings = replace(node.settings.database, pgbouncer=node.database.address.pooled)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Database]:
        database = await Database.open(
            settings,
            dsn=node.database.address.dsn,
            clock=node.clock,
            roll=node.dice.roll,
            lanes=(Lane.LEASE,),
        )
        try:
            yield database
        finally:
            await database.close()

    return opened
