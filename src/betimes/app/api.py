"""The API as a role of a node, and the first key."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

from betimes.api.application import Application
from betimes.api.cursor import Cursors
from betimes.api.limits import Admission
from betimes.api.pressure import Pressure
from betimes.api.routes import ROUTES
from betimes.api.server import BACKLOG, Server
from betimes.api.service import Service
from betimes.api.streams import Streams
from betimes.api.waiters import Waiters
from betimes.app.delivery import signing_secrets, url_policy
from betimes.app.demo import TENANT
from betimes.app.desk import desk_of
from betimes.app.dev_profile import kept_profile
from betimes.app.dispatcher import notifying_of
from betimes.app.listening import listener
from betimes.app.masters import required_vault
from betimes.app.node import Node
from betimes.app.pepper import derived, kept_secret, pepper_file, peppered, read_private
from betimes.app.shelves import shelf_of
from betimes.domain.errors import BadSetting, Conflict
from betimes.ops.credentials import Credentials
from betimes.ops.devices import Devices
from betimes.ops.keys import KeyMaker
from betimes.ops.making import make_jobs, make_runs
from betimes.ops.read import job_reader
from betimes.ops.run_ends import RunEnds
from betimes.ops.sessions import Sessions
from betimes.ops.shared_reads import SharedReads
from betimes.ops.shelf import Shelf
from betimes.ops.together import Together
from betimes.rhythm import Stopping, first_of
from betimes.store.hints import READY, Hints
from betimes.store.pool import Lane

DEV_KEY_SUFFIX = ".dev-key"
FIRST_KEY_SUFFIX = ".first-key"


class ApiRole:
    """Serves the public API."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hints = Hints(database=node.database, clock=node.clock)

    async def run(self, stopping: Stopping) -> None:
        """Serve until asked to stop; requests under way are answered."""
        async with shelf_of(self._node) as shelf:
            service = await make_service(self._node, self._hints, shelf)
            server = Server(Application(service=service, routes=ROUTES))
            with closing(bound(self._node)) as listening:
                host, port = listening.getsockname()[:2]
                self._node.telemetry.event("api.listening", url=f"http://{host}:{port}")
                await self._serve(server, listening, service, stopping)

    async def _serve(
        self, server: Server, listening: socket.socket, service: Service, stopping: Stopping
    ) -> None:
        async with asyncio.TaskGroup() as group:
            helpers = [
                group.create_task(self._hints.run(), name="api.hints"),
                group.create_task(service.run(), name="api.groups"),
            ]
            if (ear := listener(self._node, [READY], Ear(service.waiters).hear)) is not None:
                helpers.append(group.create_task(ear.run(), name="api.listen"))
            serving = group.create_task(server.serve(sockets=[listening]), name="api.serve")
            try:
                await first_of(stopping.wait(), _ended(serving))
                service.draining.begun = True
                server.should_exit = True
                await serving
            finally:
                for helper in helpers:
                    helper.cancel()


async def _ended(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])


class Ear:
    """Hears where work waits, and wakes those who wait for it."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters

    def hear(self, _channel: str, payload: str) -> None:
        """`shard:queue:tenant:visible_at`; what cannot be read wakes nobody."""
        self._waiters.heard(payload)


def bound(node: Node) -> socket.socket:
    """The socket to listen on."""
    settings = node.settings.api
    family = socket.AF_INET6 if ":" in settings.listen else socket.AF_INET
    # The protocol is named because only then do answers leave without waiting for company.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.listen, settings.port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise BadSetting(
            f"expected a free address to listen on, got {settings.listen}:{settings.port} ({error})"
        ) from error
    return listening


async def make_service(node: Node, hints: Hints, shelf: Shelf | None) -> Service:
    """Everything requests need."""
    pepper = await peppered(node)
    desk = await desk_of(node, hints, vault=await required_vault(node), shelf=shelf)
    credentials = Credentials(database=node.database, clock=node.clock, pepper=pepper)
    keys = KeyMaker(pepper=pepper)

    def group_failed(error: Exception) -> None:
        node.telemetry.event("group.failed", level="error", error=error)

    return Service(
        desk=desk,
        sessions=Sessions(
            desk=desk,
            credentials=credentials,
            clock=node.clock,
            pepper=derived(pepper, b"person"),
        ),
        devices=Devices(desk=desk, keys=keys, clock=node.clock, pepper=derived(pepper, b"device")),
        jobs=Together(desk=desk, make=make_jobs, failed=group_failed),
        runs=Together(desk=desk, make=make_runs, failed=group_failed),
        job_reads=SharedReads(desk=desk, read=job_reader(desk)),
        pressure=Pressure(
            desk=desk,
            settings=node.settings.api,
            clock=node.clock,
            telemetry=node.telemetry,
            pool_wait=lambda: node.database.waited(Lane.API),
        ),
        clock=node.clock,
        telemetry=node.telemetry,
        settings=node.settings.api,
        credentials=credentials,
        keys=keys,
        cursors=Cursors(secret=derived(pepper, b"cursor")),
        admission=Admission(settings=node.settings.api, clock=node.clock, roll=node.dice.roll),
        waiters=Waiters(node.clock),
        lease_secret=derived(pepper, b"lease"),
        grant_secret=derived(pepper, b"grant"),
        version=node.card.version,
        commit=node.settings.api.commit,
        routes=ROUTES,
        roll=node.dice.roll,
        targets=url_policy(node.settings.target),
        signing=signing_secrets(pepper),
        notifying=notifying_of(node.settings, pepper),
        streams=Streams(desk=desk.on(Lane.STREAM), clock=node.clock, telemetry=node.telemetry),
        ends=RunEnds(desk=desk.on(Lane.STREAM), clock=node.clock),
        runs_kept=timedelta(days=node.settings.janitor.retain_runs_days),
        # A day is dropped as a whole, so its last keys are a day younger than its first.
        keys_kept=timedelta(days=max(node.settings.janitor.retain_idempotency_days - 1, 1)),
    )


async def first_key(node: Node, *, another: bool) -> str:
    """An administrator's key for the default tenant: the first, or with `another` a further one."""
    desk = await desk_of(node, Hints(database=node.database, clock=node.clock))
    maker = KeyMaker(pepper=await peppered(node))
    text = await (maker.first if another else maker.bootstrap)(desk, TENANT)
    if text is None:
        raise Conflict(
            "there is an administrator's key already; whoever has it makes more with "
            "`betimes key create`, and with --another a further one is made here"
        )
    return text


async def announce_key(
    node: Node, announce: Callable[[str], None], *, keep: bool, in_sight: bool
) -> None:
    """Say where the first administrator's key is; with `keep`, the one kept for development.

    The key itself is shown only where somebody is looking (`in_sight`). What is said elsewhere ends
    up in logs, which more people read than should have it: there, a file of its owner's keeps it.
    """
    hints = Hints(database=node.database, clock=node.clock)
    desk = await desk_of(node, hints)
    maker = KeyMaker(pepper=await peppered(node))
    place = pepper_file(node.settings).with_suffix(DEV_KEY_SUFFIX if keep else FIRST_KEY_SUFFIX)
    text = await maker.bootstrap(desk, TENANT)
    is_new = text is not None
    if text is not None and (keep or not in_sight):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            kept_secret(place, text)
        except OSError as fault:
            announce(
                f"the first administrator's key cannot be kept in {place} ({fault.strerror}); "
                "make another one with `betimes key bootstrap --another`"
            )
            text, is_new = None, False
    elif keep and place.exists():
        text = read_private(place).strip()
    settings = node.settings.api
    announce(f"API at http://{settings.listen}:{settings.port}")
    if text is not None and keep:
        announce(f"key for development: {text if in_sight else f'in {place}'}")
        if settings.port:
            announce(kept_profile(f"http://{settings.listen}:{settings.port}", text))
    elif is_new:
        shown = f", shown this once: {text}" if in_sight else f" is in {place}; keep it elsewhere"
        announce(f"first administrator's key{shown}")
