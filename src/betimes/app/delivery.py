"""Deliveries to HTTP targets, put together for a node."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from betimes.api.leasing import write_own_token
from betimes.app.desk import desk_of
from betimes.app.masters import possible_vault
from betimes.app.node import Node
from betimes.app.pepper import derived, pepper_file, pepper_of
from betimes.config.target import TargetSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import BadSetting, Refused, SchedulerError
from betimes.domain.ids import JobId, TenantId, WorkerId, from_text, to_text, to_us
from betimes.ops.desk import Desk
from betimes.ops.pause import pause_job
from betimes.ops.secrets import open_secrets
from betimes.ops.tenants import get_tenant
from betimes.ops.workers import HeldLease
from betimes.store.breakers import BreakerRow, Breakers
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.store.keys import adopt_pepper
from betimes.target.address import Address, read_address
from betimes.target.answer import Patience, Request
from betimes.target.auth import Opened
from betimes.target.client import Client, Denied
from betimes.target.delivery import Delivery, Pause
from betimes.target.gate import BreakerState, Rules
from betimes.target.gates import Breaker, Gates
from betimes.target.oauth import Tokens
from betimes.target.policy import base_policy, policy_for
from betimes.target.presented import Presenter, Remembered
from betimes.target.resolve import Resolver, SystemLookup
from betimes.target.transfer import Proxy
from betimes.target.url import UrlPolicy
from betimes.worker import Context

POLICY_SECONDS = 10.0
TENANTS_MAX = 10_000
"""Most tenants whose rules or secrets are remembered."""
SIGNING_BYTES = 32
TOKEN_SECONDS = 10.0
"""Patience with an endpoint that gives out tokens."""


@asynccontextmanager
async def delivering(node: Node, worker: WorkerId) -> AsyncIterator[tuple[Gates, Delivery]]:
    """What delivers for one worker, and its gates; its connections end with it."""
    settings = node.settings.target
    desk = await desk_of(node, NoHints(), vault=await possible_vault(node))
    pepper = await _shared_pepper(node)
    gates = Gates(
        rules=Rules(
            ceiling=min(settings.origin_concurrency, max(1, node.settings.worker.slots // 4)),
            rate=settings.origin_per_second,
        ),
        clock=node.clock,
        telemetry=node.telemetry,
        breakers=StoredBreakers(node.database, worker, clock=node.clock),
        roll=node.dice.roll,
    )
    async with http_client(node) as client:
        yield (
            gates,
            Delivery(
                gates=gates,
                client=client,
                clock=node.clock,
                policies=TenantPolicies(desk, url_policy(settings), clock=node.clock),
                patience=Patience(
                    connect=settings.connect_timeout.total_seconds(),
                    idle=settings.idle_timeout.total_seconds(),
                ),
                secrets=signing_secrets(pepper),
                presenter=_presenter(node, desk, client),
                lease_token=None if pepper is None else _tokens(derived(pepper, b"lease"), worker),
                pause=_pauses(desk),
            ),
        )


@asynccontextmanager
async def http_client(node: Node) -> AsyncIterator[Client]:
    """A client under the guard of this node; its connections end with it."""
    lookup = SystemLookup()
    client = Client(
        resolver=Resolver(lookup, clock=node.clock),
        clock=node.clock,
        user_agent=f"betimes/{node.card.version}",
        proxy=await _proxy(node.settings.target),
        on_denied=_tells_denied(node),
    )
    try:
        yield client
    finally:
        client.close()
        lookup.close()


def _tells_denied(node: Node) -> Denied:
    """What a tenant is not told is in the log of the node: where a name led, and what that is."""

    def tell(request: Request, address: str, reason: str) -> None:
        node.telemetry.event(
            "target.denied",
            level="warning",
            tenant=str(request.tenant),
            host=request.url.host,
            address=address,
            reason=reason,
        )

    return tell


def url_policy(settings: TargetSettings) -> UrlPolicy:
    """The rules of this node for every tenant."""
    return base_policy(
        allow=settings.allow or (),
        names=settings.names or (),
        ports=settings.ports,
        own=own_addresses(),
        loopback=settings.loopback,
        plain_http=settings.plain_http,
        redact_headers=settings.redact_headers or (),
        redact_paths=settings.redact_paths or (),
    )


class StoredBreakers:
    """Breakers shared through the database."""

    def __init__(self, database: Database, worker: WorkerId, *, clock: Clock) -> None:
        self._rows = Breakers(database, worker, clock)

    async def tell(self, breakers: Sequence[Breaker]) -> None:
        """Write what is known here."""
        await self._rows.write(
            [
                BreakerRow(
                    tenant=TenantId(one.tenant),
                    origin=one.origin,
                    state=int(one.state),
                    failures=one.failures,
                    opened_at=one.opened_at,
                    probe_at=one.probe_at,
                    facts=one.facts,
                    changed=one.changed,
                )
                for one in breakers
            ]
        )

    async def call_probers(self, probes: Mapping[tuple[UUID, str], float]) -> None:
        """Have one of those who wait for each origin come in so many seconds."""
        told = {(TenantId(tenant), origin): wait for (tenant, origin), wait in probes.items()}
        await self._rows.call_probers(told)

    async def wake(self, closed: Collection[tuple[UUID, str]]) -> None:
        """Bring forward what waits for origins that are well again."""
        await self._rows.wake([(TenantId(tenant), origin) for tenant, origin in closed])

    async def broken(self) -> tuple[datetime, list[Breaker]]:
        """The database's time, and every breaker that is not closed."""
        now, rows = await self._rows.broken()
        return now, [
            Breaker(
                tenant=row.tenant,
                origin=row.origin,
                state=BreakerState(row.state),
                failures=row.failures,
                opened_at=row.opened_at,
                probe_at=row.probe_at,
            )
            for row in rows
        ]

    async def claim(self, tenant: UUID, origin: str, *, seconds: float) -> bool:
        """Ask to be the one who probes."""
        return await self._rows.claim(TenantId(tenant), origin, seconds=seconds)


class TenantPolicies:
    """The rules for each tenant; a change of its settings bites within seconds."""

    def __init__(self, desk: Desk, base: UrlPolicy, *, clock: Clock) -> None:
        self._desk = desk
        self._base = base
        self._clock = clock
        self._known: dict[UUID, tuple[float, UrlPolicy]] = {}

    async def __call__(self, tenant: UUID) -> UrlPolicy:
        """The rules for one tenant; those known before while the database is away."""
        known = self._known.get(tenant)
        now = self._clock.monotonic()
        if known is not None and known[0] > now:
            return known[1]
        try:
            found = await get_tenant(self._desk, to_text("ten", TenantId(tenant)))
            policy = policy_for(self._base, found.settings)
        except SchedulerError:
            policy = self._base if known is None else known[1]
        if known is not None and known[1] == policy:
            policy = known[1]
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = now + POLICY_SECONDS, policy
        return policy


def signing_secrets(pepper: bytes | None) -> Callable[[UUID], Sequence[bytes]]:
    """A signing secret for each tenant, derived from the secret of the service."""
    if pepper is None:
        return lambda _: ()
    key = derived(pepper, b"signing")
    known: dict[UUID, tuple[bytes, ...]] = {}

    def secrets(tenant: UUID) -> tuple[bytes, ...]:
        if tenant not in known:
            if len(known) >= TENANTS_MAX:
                known.clear()
            known[tenant] = (blake2b(tenant.bytes, key=key, digest_size=SIGNING_BYTES).digest(),)
        return known[tenant]

    return secrets


async def _shared_pepper(node: Node) -> bytes | None:
    """The pepper, if this node has the one the API uses; a worker alone may not have it.

    None is made here: the first one that the database sees is the one it is used with for ever.
    """
    if node.settings.api.pepper is None and not pepper_file(node.settings).exists():
        node.telemetry.event("target.unsigned", level="warning")
        return None
    pepper = pepper_of(node.settings, node.dice)
    check = derived(pepper, b"check")
    if await adopt_pepper(node.database, check) == check:
        return pepper
    node.telemetry.event("target.unsigned", level="warning")
    return None


def _presenter(node: Node, desk: Desk, client: Client) -> Presenter:
    """What opens secrets for requests, and fetches tokens with them."""
    settings = node.settings.target

    async def read(tenant: UUID, names: Sequence[str]) -> Opened:
        return await open_secrets(desk, TenantId(tenant), names)

    return Presenter(
        open_secrets=Remembered(read=read, clock=node.clock).open,
        tokens=Tokens(
            send=client.send_repeatable,
            clock=node.clock,
            patience=Patience(
                connect=settings.connect_timeout.total_seconds(),
                total=TOKEN_SECONDS,
                idle=settings.idle_timeout.total_seconds(),
            ),
        ),
    )


def _tokens(secret: bytes, worker: WorkerId) -> Callable[[Context], str]:
    def token(context: Context) -> str:
        run, parcel, spec, started_at = context.portable()
        lease = HeldLease(
            run=run.id,
            parcel=parcel.id,
            worker=worker,
            fence=parcel.fence,
            attempt=context.attempt,
            started_us=to_us(started_at),
            plain=spec.is_plain,
            shard=parcel.shard,
        )
        return write_own_token(secret, parcel.tenant, lease, queue=parcel.queue)

    return token


def _pauses(desk: Desk) -> Pause:
    async def pause(tenant: str, job: str, reason: str) -> None:
        try:
            await pause_job(
                desk,
                TenantId(UUID(tenant)),
                JobId(from_text("job", job)),
                reason=reason,
                actor="betimes",
                by_rule=True,
            )
        except Refused:
            return  # deleted, cancelled or completed meanwhile: nothing is left to pause

    return pause


async def _proxy(settings: TargetSettings) -> Proxy | None:
    if settings.proxy is None:
        return None
    host = urlsplit(settings.proxy).hostname
    if not host:
        raise BadSetting("expected target.proxy such as http://10.0.0.5:4750")
    addresses = [host] if read_address(host) else await SystemLookup()(host)
    return Proxy(settings.proxy, frozenset(addresses))


def own_addresses() -> frozenset[Address]:
    """Addresses of this machine's interfaces, as the kernel lists them; none where it does not."""
    found = {*_listed_v4(Path("/proc/net/fib_trie")), *_listed_v6(Path("/proc/net/if_inet6"))}
    return frozenset(address for address in found if not address.is_loopback)


def _listed_v4(file: Path) -> list[Address]:
    """The leaf before each line that says `host LOCAL`."""
    found: list[Address] = []
    last = ""
    for line in _lines(file):
        words = line.split()
        if words[:1] == ["|--"]:
            last = words[1]
        elif words[-2:] == ["host", "LOCAL"]:
            found.append(ip_address(last))
    return found


def _listed_v6(file: Path) -> list[Address]:
    return [ip_address(bytes.fromhex(line.split()[0])) for line in _lines(file)]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
