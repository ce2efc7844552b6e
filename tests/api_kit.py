"""What tests of the API share: a served application on a real socket, and a plain client."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import UUID

from betimes.api.application import Application
from betimes.api.cursor import Cursors
from betimes.api.limits import Admission
from betimes.api.pressure import Pressure
from betimes.api.routes import ROUTES
from betimes.api.server import Server
from betimes.api.service import Service
from betimes.api.streams import Streams
from betimes.api.waiters import Waiters
from betimes.config.api import ApiSettings
from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId
from betimes.janitor.operate import Operator
from betimes.ops.credentials import Credentials
from betimes.ops.desk import Desk
from betimes.ops.devices import Devices
from betimes.ops.endpoints import Notifying
from betimes.ops.keys import KeyMaker, NewKey
from betimes.ops.making import make_jobs, make_runs
from betimes.ops.read import job_reader
from betimes.ops.run_ends import RunEnds
from betimes.ops.sessions import Sessions
from betimes.ops.shared_reads import SharedReads
from betimes.ops.tenants import create_tenant, new_tenant
from betimes.ops.together import Together
from betimes.ops.vault import MasterKey, Vault
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.store.pool import Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.testing.postgres import SHARDS
from betimes.testing.real_clock import RealClock

DEFAULT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
PEPPER = bytes(range(32))
MASTER = MasterKey(bytes(range(32, 64)))
TOKENS = count(1)


def half() -> float:
    return 0.5


@dataclass(slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["code"])


@dataclass(slots=True)
class Client:
    """Speaks HTTP/1.1, one connection per request."""

    port: int
    key: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
        idem: str | None = "",
    ) -> Answer:
        """One request; `idem` is its idempotency key, a fresh one for every POST unless None."""
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        sent = {"host": "test", "connection": "close", "content-length": str(len(content))}
        if body is not None:
            sent["content-type"] = "application/json"
        if self.key is not None:
            sent["authorization"] = f"Bearer {self.key}"
        if idem or (method == "POST" and idem is not None):
            sent["idempotency-key"] = idem or f"test-{next(TOKENS)}"
        sent |= self.headers | (headers or {})
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in sent.items())
        return await self.send(f"{head}\r\n".encode() + content)

    async def send(self, data: bytes) -> Answer:
        """Bytes as they are; the whole answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            return read_answer(await asyncio.wait_for(reader.read(-1), 30))
        finally:
            writer.close()
            await writer.wait_closed()


def read_answer(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


@dataclass(slots=True)
class Served:
    """A running API with its keys."""

    service: Service
    port: int
    recorder: Recorder
    desk: Desk
    server: Server

    def client(self, key: str | None) -> Client:
        return Client(self.port, key)

    async def key(self, tenant: TenantId = DEFAULT, kind: str = "ak", **more: Any) -> str:
        new = NewKey(name="test", kind=kind, **more)
        return (await self.service.keys.create(self.desk, tenant, new, by=None)).text

    async def tenant(self, slug: str) -> TenantId:
        fresh = new_tenant(
            self.desk,
            slug=slug,
            name=slug,
            timezone="UTC",
            plan="standard",
            weight=1.0,
            quotas={},
            settings={},
        )
        return (await create_tenant(self.desk, fresh)).id

    async def admin(self) -> Client:
        return self.client(await self.key())

    async def operate(self) -> int:
        """What the janitor's operator does in one pass."""
        service = self.service
        operator = Operator(desk=self.desk, clock=service.clock, telemetry=service.telemetry)
        return await operator.tick()


def make_service(
    database: Database, clock: Clock, recorder: Recorder, *, seals: bool = False, **wishes: Any
) -> Service:
    # A busy machine is no overload: whoever tests shedding asks for it.
    calm = {"shed_pool_wait": timedelta(minutes=1), "shed_pause": timedelta(0)}
    settings = ApiSettings(**{"port": 0, **calm, **wishes})
    desk = Desk(
        database=database,
        clock=clock,
        hints=NoHints(),
        entropy=os.urandom,
        shards=SHARDS,
        tzdata="2026a",
        vault=Vault(masters=[MASTER], clock=clock, entropy=os.urandom),
        seals=seals,
    )
    credentials = Credentials(database=database, clock=clock, pepper=PEPPER)
    keys = KeyMaker(pepper=PEPPER)
    return Service(
        desk=desk,
        sessions=Sessions(desk=desk, credentials=credentials, clock=clock, pepper=PEPPER),
        devices=Devices(desk=desk, keys=keys, clock=clock, pepper=PEPPER),
        jobs=Together(desk=desk, make=make_jobs),
        runs=Together(desk=desk, make=make_runs),
        job_reads=SharedReads(desk=desk, read=job_reader(desk)),
        pressure=Pressure(
            desk=desk,
            settings=settings,
            clock=clock,
            telemetry=Telemetry(clock=clock),
            pool_wait=lambda: database.waited(Lane.API),
        ),
        clock=clock,
        telemetry=Telemetry(clock=clock, handlers=[recorder]),
        settings=settings,
        credentials=credentials,
        keys=keys,
        cursors=Cursors(secret=PEPPER),
        admission=Admission(settings=settings, clock=clock, roll=half),
        waiters=Waiters(clock),
        lease_secret=PEPPER,
        grant_secret=PEPPER,
        version="0",
        commit="0123abc",
        routes=ROUTES,
        roll=half,
        notifying=Notifying(secret_key=PEPPER, mail_domains=()),
        streams=Streams(desk=desk.on(Lane.STREAM), clock=clock, telemetry=Telemetry(clock=clock)),
        ends=RunEnds(desk=desk.on(Lane.STREAM), clock=clock),
    )


@asynccontextmanager
async def served(
    dsn: str, *, store: DatabaseSettings | None = None, **wishes: Any
) -> AsyncIterator[Served]:
    """The real application on a real socket and a real database."""
    clock, recorder = RealClock(), Recorder()
    database = await Database.open(store or DatabaseSettings(), dsn=dsn, clock=clock, roll=half)
    service = make_service(database, clock, recorder, **wishes)
    server = Server(Application(service=service, routes=ROUTES))
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        listening.setblocking(False)
        async with asyncio.TaskGroup() as group:
            grouping = group.create_task(service.run())
            serving = group.create_task(server.serve(sockets=[listening]))
            yield Served(service, listening.getsockname()[1], recorder, service.desk, server)
            service.draining.begun = True  # as a node does that is about to stop: streams end
            server.should_exit = True
            await serving
            grouping.cancel()
    await database.close()
