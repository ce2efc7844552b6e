"""A cluster of real processes on a real PostgreSQL, each behind a proxy of its own."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.embedded import EmbeddedPostgres
from betimes.store.migrate import migrate
from betimes.testing.history import FaultFact
from betimes.testing.postgres import socket_of, through
from betimes.testing.proxy import FaultProxy
from chaos.witness import TRIGGERS
from embedded_kit import Place, RealClock

TTL = 3.0
TAKEOVER_SECONDS = TTL + 2.0
SHARDS = 8
TESTS = Path(__file__).parent.parent
QUICK = {
    "coordinator.lease_ttl": "3s",
    "coordinator.renew_every": "500ms",
    "coordinator.horizon": "30s",
    "worker.lease_ttl": "3s",
    "worker.heartbeat_every": "500ms",
    "worker.slots": "20",
    "coordinator.sweep_every": "5s",
    "janitor.reap_every": "500ms",
    "server.presence_every": "500ms",
    "server.drain_timeout": "10s",
    "database.connect_timeout": "2s",
}
ROLES = {"c1": "coordinator", "c2": "coordinator", "w1": "worker", "w2": "worker", "j1": "janitor"}


@dataclass
class NodeProcess:
    """One node: its process, its proxies, and how often it was started."""

    name: str
    proxy: FaultProxy
    ear: FaultProxy
    log: Path
    popen: "subprocess.Popen[bytes] | None" = None
    wanted: bool = False
    deaths: int = 0

    @property
    def alive(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    @property
    def kind(self) -> str:
        return ROLES[self.name]

    def send(self, number: signal.Signals) -> None:
        assert self.popen is not None
        self.popen.send_signal(number)


@dataclass
class Stage:
    """Everything of one chaos run."""

    place: Place
    postgres: EmbeddedPostgres
    dsn: str
    nodes: dict[str, NodeProcess] = field(default_factory=dict)
    faults: list[FaultFact] = field(default_factory=list)
    returned_at: float = 0.0
    refused: int = 0
    accepted: list[str] = field(default_factory=list)

    @property
    def witness_path(self) -> Path:
        return self.place.root / "witness.jsonl"

    def start(self, name: str) -> None:
        """Start a node, or start it anew."""
        node = self.nodes[name]
        settings = [f"--set={key}={value}" for key, value in QUICK.items()]
        listen = through(self.dsn, node.ear.port)
        if node.popen is not None:
            node.popen.wait(timeout=10)
        node.wanted = True
        with node.log.open("ab") as log:
            node.popen = subprocess.Popen(
                [sys.executable, "-m", "chaos.node", str(self.witness_path), "server", "start",
                 "--dsn", through(self.dsn, node.proxy.port), "--listen-dsn", listen,
                 "--roles", node.kind, "--node", name, "--log-format", "json", *settings],
                env={**_kept_environment(), "PYTHONPATH": str(TESTS), "HOME": str(self.place.root)},
                cwd=self.place.root, stdout=log, stderr=log,
            )  # fmt: skip

    async def keep(self) -> None:
        """What a service manager does: start again whatever died."""
        while True:
            await asyncio.sleep(0.2)
            for node in self.nodes.values():
                if node.wanted and not node.alive:
                    node.deaths += 1
                    self.start(node.name)
                    self.note(f"death {node.kind}", node.name, time.time() - 0.3)

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Ask the database directly, past every proxy."""
        connection = await asyncpg.connect(self.dsn, timeout=10)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    async def owner(self, name: str) -> UUID:
        """The identity under which a node lives now."""
        rows = await self.fetch(
            "SELECT id FROM betimes.nodes WHERE name = $1 ORDER BY id DESC LIMIT 1", name
        )
        found: UUID = rows[0]["id"]
        return found

    async def owned(self) -> int:
        rows = await self.fetch(
            "SELECT count(DISTINCT owner) AS owners, count(owner) AS shards FROM betimes.shards"
            " WHERE lease_until > now()"
        )
        return int(rows[0]["shards"]) if rows[0]["owners"] >= 2 else 0

    async def until_balanced(self, seconds: float = 40.0) -> None:
        """Every shard has an owner, and both coordinators have some."""
        deadline = time.monotonic() + seconds
        while await self.owned() < SHARDS:
            assert time.monotonic() < deadline, f"no balance:\n{self.said()}"
            await asyncio.sleep(0.2)

    async def until_workers(self, seconds: float = 40.0) -> None:
        """Every node has said that it is alive."""
        deadline = time.monotonic() + seconds
        while True:
            rows = await self.fetch(
                "SELECT DISTINCT name FROM betimes.nodes"
                " WHERE heartbeat_at > now() - interval '2 s'"
            )
            if len(rows) >= len(self.nodes):
                return
            assert time.monotonic() < deadline, f"not all came:\n{self.said()}"
            await asyncio.sleep(0.2)

    async def until_busy(self, name: str, seconds: float = 60.0) -> None:
        """A worker holds a lease that has most of its time before it."""
        deadline = time.monotonic() + seconds
        while True:
            rows = await self.fetch(
                "SELECT FROM betimes.parcels JOIN betimes.workers ON workers.id = parcels.worker_id"
                " JOIN betimes.runs ON runs.shard = parcels.shard AND runs.id = ANY (run_ids)"
                " JOIN betimes.nodes ON nodes.id = workers.node_id"
                " WHERE nodes.name = $1 AND runs.payload = '2.5' AND runs.state < 4"
                " AND runs.due_at > clock_timestamp() - interval '1 s'",
                name,
            )
            if rows:
                return
            assert time.monotonic() < deadline, f"{name} never held a slow run:\n{self.said()}"
            await asyncio.sleep(0.05)

    def events(self) -> list[dict[str, Any]]:
        """Every line that every node has logged."""
        return [
            {"node": node.name, **json.loads(line)}
            for node in self.nodes.values()
            for line in node.log.read_text(errors="replace").splitlines()
            if line.startswith("{")
        ]

    def said(self) -> str:
        """The last words of everybody."""
        return "\n".join(
            f"--- {node.name}\n{node.log.read_text(errors='replace')[-2000:]}"
            for node in self.nodes.values()
        )

    def note(self, kind: str, target: str, began_at: float, **more: Any) -> None:
        """What the nemesis did."""
        self.faults.append(FaultFact(kind, target, began_at, time.time(), **more))


def _kept_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}


@asynccontextmanager
async def a_stage(place: Place, *, names: Sequence[str] = tuple(ROLES)) -> AsyncIterator[Stage]:
    """Start everything, keep it alive, stop it; nothing is left behind."""
    async with place.server(unsafe_no_fsync=False, patience=60.0) as postgres:
        dsn = postgres.dsn()
        await migrate(dsn, DatabaseSettings(), shards=SHARDS, clock=RealClock())
        stage = Stage(place, postgres, dsn)
        await _execute(dsn, TRIGGERS)
        async with asyncio.TaskGroup() as group, _proxies(stage, names):
            for name in names:
                stage.start(name)
            keeper = group.create_task(stage.keep())
            try:
                await stage.until_workers()
                yield stage
            finally:
                keeper.cancel()
                await _stop_all(stage)


@asynccontextmanager
async def _proxies(stage: Stage, names: Sequence[str]) -> AsyncIterator[None]:
    upstream = socket_of(stage.dsn)
    opened: list[FaultProxy] = []
    try:
        for name in names:
            pair = (FaultProxy(upstream), FaultProxy(upstream))
            for proxy in pair:
                await proxy.__aenter__()
                opened.append(proxy)
            log = stage.place.root / f"{name}.log"
            log.touch()
            stage.nodes[name] = NodeProcess(name, *pair, log)
        yield
    finally:
        for proxy in opened:
            await proxy.__aexit__(None, None, None)


async def _stop_all(stage: Stage) -> None:
    """Ask everybody to stop; who does not within a while is ended, by its own pid."""
    for node in stage.nodes.values():
        node.wanted = False
        node.proxy.heal()
        if node.alive:
            node.send(signal.SIGCONT)
            node.send(signal.SIGTERM)
    for node in stage.nodes.values():
        if node.popen is not None:
            await asyncio.to_thread(_ended, node)


def _ended(node: NodeProcess) -> None:
    assert node.popen is not None
    try:
        node.popen.wait(timeout=15)
    except subprocess.TimeoutExpired:
        node.popen.kill()
        node.popen.wait()


async def _execute(dsn: str, statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()
