"""A whole node, from settings to exit code."""

import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version as version_of
from typing import TextIO

import betimes
from betimes.app import database as databases
from betimes.app.api import announce_key, first_key
from betimes.app.clock import SystemClock
from betimes.app.demo import Demo, Print, demo_handlers
from betimes.app.dice import Dice
from betimes.app.loop import run_to_end
from betimes.app.masters import require_private, required_vault
from betimes.app.node import Node
from betimes.app.presence import Presence
from betimes.app.roles import RoleEntry
from betimes.app.signals import hearing_signals
from betimes.app.supervise import Ending, Supervisor
from betimes.app.table import FACTORIES, known_entries
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.domain.errors import SchedulerError
from betimes.domain.ids import TAIL_BYTES, NodeId, random_ids, to_ms
from betimes.rhythm import Stopping
from betimes.store import nodes
from betimes.store.consistency import Checked, Checker
from betimes.store.nodes import NodeCard
from betimes.store.partitions import Partitions
from betimes.store.server import read_clock
from betimes.telemetry import Telemetry
from betimes.telemetry.log import LogHandler, StandardBridge, choose_style
from betimes.worker.builtin import builtin_handlers

__all__ = [
    "Announce",
    "check_records",
    "database_complaints",
    "make_key",
    "make_telemetry",
    "migrate",
    "run_to_end",
    "serve",
]

Announce = Callable[[str], None]


async def serve(
    settings: Settings,
    *,
    announce: Announce,
    show: Print | None = None,
    keep: bool = False,
    stream: TextIO = sys.stderr,
) -> int:
    """Run a node until it is told to stop; returns the exit code of the process.

    With `show` the demo's jobs are run too, and each of their runs is shown in a line; with `keep`
    the first key is kept for development, with a profile that has it. Keys are shown where the
    stream is a terminal, and otherwise only where they lie.

    0 after an orderly end, 1 when work had to be cut off after the drain timeout, 128 plus the
    signal's number after a second signal.
    """
    stopping = Stopping()
    clock = SystemClock()
    telemetry = make_telemetry(settings, clock=clock, stream=stream)
    with hearing_signals(stopping) as interrupts:
        ending = await _serve(
            settings,
            stopping,
            clock,
            telemetry,
            announce,
            show,
            keep=keep,
            in_sight=stream.isatty(),
        )
    if ending is Ending.HASTENED:
        return interrupts.exit_code
    return 0 if ending is Ending.DRAINED else 1


async def migrate(settings: Settings, *, progress: Callable[[str], None]) -> list[str]:
    """Bring the database to this release; the names of what was applied."""
    clock, dice = SystemClock(), Dice()
    async with databases.located(settings, clock=clock, dice=dice) as place:
        return await databases.migrate(settings, place, clock=clock, progress=progress)


async def make_key(settings: Settings, *, another: bool) -> str:
    """An administrator's key for the default tenant, if there is none or `another` is wanted."""
    async with a_node(settings) as node:
        return await first_key(node, another=another)


@asynccontextmanager
async def a_node(settings: Settings) -> AsyncIterator[Node]:
    """A node that plays no role, for commands that need the database and nobody else."""
    clock, dice = SystemClock(), Dice()
    async with databases.located(settings, clock=clock, dice=dice) as place:
        await databases.require_schema(settings, place)
        async with databases.opened(settings, place, clock=clock, dice=dice) as database:
            yield Node(
                card=_card(settings, clock, dice),
                settings=settings,
                clock=clock,
                dice=dice,
                telemetry=Telemetry(clock=clock),
                database=database,
                listen_dsn=place.direct_dsn,
            )


async def database_complaints(settings: Settings) -> list[str]:
    """What stands between these settings and a database to serve on; empty means nothing."""
    clock, dice = SystemClock(), Dice()
    try:
        async with databases.located(settings, clock=clock, dice=dice) as place:
            if complaints := await databases.version_complaints(settings, place):
                return complaints
            async with databases.opened(settings, place, clock=clock, dice=dice) as database:
                return await databases.safety_complaints(database)
    except SchedulerError as error:
        return [str(error)]


async def check_records(settings: Settings) -> Checked:
    """A bounded look through a database for what cannot be; it only reads.

    Raises:
        SchedulerError: it could not be looked at.

    """
    clock, dice = SystemClock(), Dice()
    async with (
        databases.located(settings, clock=clock, dice=dice) as place,
        databases.opened(settings, place, clock=clock, dice=dice) as database,
    ):
        return await Checker(database).check()


def make_telemetry(settings: Settings, *, clock: Clock, stream: TextIO) -> Telemetry:
    """The process's telemetry, logging to a stream, and taking in what libraries say."""
    log = LogHandler(
        stream=stream,
        clock=clock,
        level=settings.log.level,
        style=choose_style(settings.log.format, stream),
        colour=settings.log.colour and stream.isatty(),
    )
    telemetry = Telemetry(clock=clock, handlers=[log])
    logging.basicConfig(handlers=[StandardBridge(telemetry=telemetry)], force=True)
    # It tells every try while the server is away, with a traceback; our duties tell it once.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
    return telemetry


async def _serve(
    settings: Settings,
    stopping: Stopping,
    clock: Clock,
    telemetry: Telemetry,
    announce: Announce,
    show: Print | None,
    *,
    keep: bool,
    in_sight: bool,
) -> Ending:
    dice = Dice()
    require_private(settings)
    async with databases.located(settings, clock=clock, dice=dice) as place:
        if settings.server.migrate:
            await databases.migrate(
                settings, place, clock=clock, progress=lambda name: announce(f"migrating: {name}")
            )
        await databases.require_schema(settings, place)
        async with databases.opened(settings, place, clock=clock, dice=dice) as database:
            for doubt in await databases.require_safety(settings, database):
                announce(f"unsafe: {doubt}")
            node = Node(
                card=_card(settings, clock, dice),
                settings=settings,
                clock=clock,
                dice=dice,
                telemetry=telemetry,
                database=database,
                listen_dsn=place.direct_dsn,
            )
            await Partitions(database).ensure(
                (await read_clock(database)).date(),
                ahead_days=settings.janitor.partitions_ahead_days,
            )
            announce(_where(place))
            if settings.target.loopback:
                announce("targets on this machine may be called: for development only")
            if "api" in settings.server.roles:
                await announce_key(node, announce, keep=keep, in_sight=in_sight)
                await required_vault(node)  # before a worker looks for the keys
            async with _present(node):
                return await _supervise(node, place, stopping, show)


async def _supervise(
    node: Node, place: databases.Place, stopping: Stopping, show: Print | None
) -> Ending:
    keeper = place.embedded
    handlers = demo_handlers(node, show) if show else builtin_handlers(node.clock)
    roles = [
        RoleEntry("presence", lambda: Presence(node=node)),
        *known_entries(node, handlers),
    ]
    if show:
        roles.append(RoleEntry("demo", lambda: Demo(node=node)))
    if keeper is not None:
        roles.insert(0, RoleEntry("embedded", lambda: databases.EmbeddedKeeper(postgres=keeper)))
    supervisor = Supervisor(
        roles=roles,
        settings=node.settings.server,
        clock=node.clock,
        telemetry=node.telemetry,
        roll=node.dice.roll,
        node=node.card.name,
    )
    names = [role.name for role in roles]
    node.telemetry.event(
        "node.started", node=node.card.name, roles=names, version=node.card.version
    )
    ending = await supervisor.run(stopping)
    node.telemetry.event("node.stopped", node=node.card.name, ending=ending.value)
    return ending


@asynccontextmanager
async def _present(node: Node) -> AsyncIterator[None]:
    """Say goodbye to the other nodes at the end, if the database still listens."""
    yield
    try:
        await nodes.leave(node.database, node.card.id)
    except SchedulerError as error:
        node.telemetry.event("presence.lost", level="warning", error=error)


def _card(settings: Settings, clock: Clock, dice: Dice) -> NodeCard:
    (identifier,) = random_ids(to_ms(clock.now()), 0, dice.entropy(TAIL_BYTES))
    return NodeCard(
        id=NodeId(identifier),
        name=settings.server.node or f"{socket.gethostname()}-{os.getpid()}",
        version=betimes.__version__,
        tzdata=version_of("tzdata"),
        roles=tuple(name for name in settings.server.roles if name in FACTORIES),
    )


def _where(place: databases.Place) -> str:
    if place.embedded is None:
        return "serving on the given PostgreSQL"
    way = "attached to" if place.embedded.attached else "serving on"
    return f"{way} the embedded PostgreSQL, log {place.embedded.log_path}"
