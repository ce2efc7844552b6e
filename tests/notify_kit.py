"""What tests of notifications share: a dispatcher cranked by hand, events, endpoints."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from betimes.config.mail import MailSettings
from betimes.config.notify import NotifySettings
from betimes.dispatcher.courier import Courier
from betimes.dispatcher.mail import Mailer
from betimes.dispatcher.route import Router
from betimes.dispatcher.send import Sender
from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId, random_ids, shard_of, to_ms
from betimes.domain.notice import Filter
from betimes.ops.desk import Desk
from betimes.ops.endpoints import Endpoint, active_secrets, create_endpoint, new_endpoint
from betimes.store.database import Database
from betimes.store.deliveries import Delivery, list_deliveries, tell
from betimes.store.pool import Connection, Lane
from betimes.target.answer import Patience
from betimes.target.url import UrlPolicy
from betimes.telemetry import Recorder, Telemetry
from ops_kit import SHARDS, TENANT, fetch
from target_kit import DEV, a_client

KEY = bytes(range(32))
FIRST = UUID(int=0)
LAST = UUID(int=(1 << 128) - 1)


def half() -> float:
    return 0.5


@dataclass
class Bench:
    """A router and a courier without loops of their own."""

    router: Router
    courier: Courier
    desk: Desk
    recorder: Recorder
    telemetry: Telemetry

    async def turn(self) -> int:
        """Hand out what has arrived, and send what is due, until nothing is."""
        await self.router.tick()
        return await self.deliver()

    async def deliver(self) -> int:
        begun = 0
        while now := await self.courier.tick():
            begun += now
            await self.courier.idle()
        return begun


@asynccontextmanager
async def a_dispatcher(
    desk: Desk,
    *,
    policy: UrlPolicy = DEV,
    mail: MailSettings | None = None,
    clock: Clock | None = None,
    patience: float = 5.0,
    **settings: Any,
) -> AsyncIterator[Bench]:
    clock = clock or desk.clock
    recorder = Recorder()
    telemetry = Telemetry(clock=clock, handlers=[recorder])
    chosen = NotifySettings(**settings)

    async def policies(_: UUID) -> UrlPolicy:
        return policy

    async with a_client() as client:
        sender = Sender(
            client=client,
            clock=clock,
            policies=policies,
            secrets=lambda endpoint: active_secrets(KEY, endpoint, now=desk.clock.now()),
            patience=Patience(total=patience),
            mailer=None if mail is None else Mailer(mail),
        )
        courier = Courier(
            database=desk.database,
            sender=sender,
            clock=clock,
            telemetry=telemetry,
            settings=chosen,
            roll=half,
            entropy=os.urandom,
            vault=desk.vault,
            desk=desk,
        )
        router = Router(
            database=desk.database,
            clock=clock,
            telemetry=telemetry,
            settings=chosen,
            shards=SHARDS,
        )
        async with courier.working():
            yield Bench(router, courier, desk, recorder, telemetry)


async def an_endpoint(
    desk: Desk,
    address: str,
    *,
    kind: str = "webhook",
    types: Sequence[str] = ("*",),
    chosen: Filter | None = None,
    tenant: TenantId = TENANT,
    credential: bytes | None = None,
    **settings: Any,
) -> Endpoint:
    fresh = new_endpoint(
        desk,
        tenant,
        kind=kind,
        name="test",
        address=address,
        event_types=types,
        chosen=chosen or Filter(),
        settings=settings,
        disabled=False,
        by=None,
    )
    return await create_endpoint(desk, fresh, most=1000, credential=credential)


async def an_event(
    desk: Desk,
    kind: str = "run.dead",
    body: Mapping[str, Any] | None = None,
    *,
    tenant: TenantId = TENANT,
    at: datetime | None = None,
) -> UUID:
    """Write an event, as whoever makes something true writes one."""
    now = at or datetime.now(UTC)  # noqa: TID251 -- like a node with a clock of its own
    (event,) = random_ids(to_ms(now), desk.next_shard(), os.urandom(8))

    async def work(connection: Connection) -> None:
        await tell(
            connection,
            tenant,
            kind,
            event=event,
            subject="run_test",
            body={"queue": "default", "state": "dead", **(body or {})},
            now=now,
        )

    await desk.database.transact(work, lane=Lane.ENGINE, repeatable=True)
    return event


async def deliveries(desk: Desk, endpoint: Endpoint) -> list[Delivery]:
    """Every delivery to an endpoint, oldest first."""

    async def work(connection: Connection) -> list[Delivery]:
        return await list_deliveries(
            connection, endpoint.tenant, endpoint.id, before=LAST, states=(), types=(), most=1000
        )

    found = await desk.database.transact(work, lane=Lane.ENGINE, repeatable=True)
    return list(reversed(found))


async def mailbox(database: Database, endpoint: Endpoint) -> Any:
    rows = await fetch(
        database,
        "SELECT * FROM betimes.mailboxes WHERE shard = $1 AND endpoint_id = $2",
        shard_of(endpoint.id),
        endpoint.id,
    )
    return rows[0]
