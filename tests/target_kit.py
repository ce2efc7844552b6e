"""What tests of deliveries share: a target that behaves as its path says, and a client."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from betimes.domain.outcome import Snoozed
from betimes.target.address import AddressPolicy
from betimes.target.answer import Patience, Request, Tls
from betimes.target.client import Client, Denied
from betimes.target.gate import Rules
from betimes.target.gates import Gates
from betimes.target.resolve import Lookup, Resolver
from betimes.target.transfer import Proxy
from betimes.target.url import UrlPolicy, read_url
from betimes.telemetry import Telemetry
from betimes.testing.real_clock import RealClock

DATA = Path(__file__).parent / "data"
CERTIFICATE, KEY = DATA / "target-cert.pem", DATA / "target-key.pem"
LOOPBACK = AddressPolicy(loopback=True)
DEV = UrlPolicy(addresses=LOOPBACK, plain_http=True)
TENANT = UUID(int=1)
AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass(slots=True)
class Received:
    """A request as the target saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Attempt:
    """An attempt as a worker would tell it."""

    target: Mapping[str, Any]
    payload: bytes | None = b'{"n":1}'
    attempt: int = 1
    fence: int = 4
    waited_for: str | None = None
    job_id: str | None = "job_1"
    fire_at: datetime | None = AT
    due_at: datetime = AT
    started_at: datetime = AT
    deadline: datetime | None = None
    run_id: str = "run_01"
    traceparent: str = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    tracestate: str | None = "vendor=1"
    tenant_id: str = str(UUID(int=7))
    cancelled: bool = False
    parked: bool = False
    told: asyncio.Event = field(default_factory=asyncio.Event)
    held: bool = True

    def is_held(self) -> bool:
        return self.held

    async def wait_cancelled(self) -> None:
        await self.told.wait()

    def park(self) -> bool:
        self.parked = True
        return True

    def snooze(self, pause: timedelta) -> Snoozed:
        return Snoozed(until=AT + pause)


Behave = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class FakeTarget:
    """A server whose answers a test chooses; `status` is what it says without a `behave`."""

    port: int = 0
    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    behave: Behave | None = None
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    scheme: str = "http"
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if (task := asyncio.current_task()) is not None:
            self.tasks.append(task)
        number = self.connections
        try:
            while (request := await _read(reader, number)) is not None:
                self.received.append(request)
                self.arrived.set()
                if self.behave is not None:
                    await self.behave(request, writer)
                else:
                    writer.write(answer(self.status, self.body, self.headers))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass  # the end of the test is the end of the connection
        finally:
            writer.close()


def answer(status: int = 200, body: bytes = b"ok", headers: dict[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _read(reader: asyncio.StreamReader, number: int) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ", 2)
    return Received(method, path, headers, body, number, lines)


@asynccontextmanager
async def a_target(*, tls: ssl.SSLContext | None = None, **given: Any) -> AsyncIterator[FakeTarget]:
    """A target that listens on loopback until the end of the block."""
    target = FakeTarget(scheme="https" if tls else "http", **given)
    server = await asyncio.start_server(target.serve, "127.0.0.1", 0, ssl=tls)
    target.port = server.sockets[0].getsockname()[1]
    try:
        yield target
    finally:
        server.close()
        for task in target.tasks:
            task.cancel()
        await asyncio.gather(*target.tasks, return_exceptions=True)


def server_tls(*, demand_certificate: bool = False) -> ssl.SSLContext:
    """TLS with the certificate of the tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    if demand_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTIFICATE)
    return context


def some_gates(**rules: Any) -> Gates:
    """Gates of one process that agrees with nobody."""
    clock = RealClock()
    return Gates(rules=Rules(**rules), clock=clock, telemetry=Telemetry(clock=clock))


async def no_names(host: str) -> list[str]:
    raise OSError(f"no such name: {host}")


@asynccontextmanager
async def a_client(
    lookup: Lookup = no_names, *, proxy: Proxy | None = None, on_denied: Denied | None = None
) -> AsyncIterator[Client]:
    """A client whose names mean what the test says."""
    clock = RealClock()
    client = Client(
        resolver=Resolver(lookup, clock=clock), clock=clock, proxy=proxy, on_denied=on_denied
    )
    try:
        yield client
    finally:
        client.close()


def a_request(
    url: str,
    *,
    method: str = "POST",
    body: bytes | None = b"{}",
    headers: list[str] | None = None,
    policy: UrlPolicy = DEV,
    tls: Tls | None = None,
    tenant: UUID = TENANT,
    **patience: float,
) -> Request:
    """A request as a delivery would make it."""
    return Request(
        tenant=tenant,
        url=read_url(url, policy),
        method=method,
        headers=["content-type: application/json", "Expect:", *(headers or [])],
        body=body,
        patience=Patience(**patience),
        addresses=policy.addresses,
        tls=tls,
    )
