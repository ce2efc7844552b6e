"""What is done to the cluster. Every fault is written down with its beginning and its end."""

import asyncio
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.ids import NodeId
from betimes.embedded.process import signal_postmaster
from betimes.store.database import Database
from betimes.store.publish import Batch, Publishing
from betimes.store.shards import Claim, Shards
from chaos.stage import TAKEOVER_SECONDS, TTL, NodeProcess, Stage
from embedded_kit import RealClock

COMMIT = b"COMMIT"
ANY_STATEMENT = b"__asyncpg_stmt_"


class Nemesis:
    """Faults, one at a time; each returns when it is healed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._claims: list[Claim] = []

    async def kill(self, name: str) -> None:
        """Kill -9; the service manager comes late enough for a takeover to be needed."""
        node, began_at, more = await self._begin(name)
        node.wanted = False
        node.send(signal.SIGKILL)
        await asyncio.sleep(TAKEOVER_SECONDS + 0.5 if node.kind == "coordinator" else 1.0)
        self._stage.note(f"kill {node.kind}", name, began_at, **more)
        await self._send_late(more)
        self._stage.start(name)

    async def freeze(self, name: str, seconds: float = TAKEOVER_SECONDS + 0.5) -> None:
        """SIGSTOP past the lease, then SIGCONT; a worker is caught while it holds something."""
        if self._stage.nodes[name].kind == "worker":
            await self._stage.until_busy(name)
        node, began_at, more = await self._begin(name)
        node.send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        await self._send_late(more)
        node.send(signal.SIGCONT)
        self._stage.note(f"freeze {node.kind}", name, began_at, **more)

    async def cut(self, name: str, seconds: float = TAKEOVER_SECONDS + 0.5) -> None:
        """Nothing passes and nothing is closed; what was under way arrives when it heals."""
        node, began_at, more = await self._begin(name)
        node.proxy.change(half_open=True)
        await asyncio.sleep(seconds)
        await self._send_late(more)
        node.proxy.heal()
        self._stage.note(f"cut {node.kind}", name, began_at, **more)

    async def swallow(self, name: str, said: bytes, seconds: float = 2.0) -> None:
        """Requests get through, replies do not: commits whose fate nobody knows."""
        node, began_at, _ = await self._begin(name)
        node.proxy.change(swallow_reply=said)
        await asyncio.sleep(seconds)
        node.proxy.heal()
        self._stage.note(f"swallow {node.kind}", name, began_at)

    async def drain(self, name: str) -> float:
        """SIGTERM under load; how long its shards had no owner, or 0."""
        node, began_at, _ = await self._begin(name)
        node.wanted = False
        assert node.popen is not None
        node.send(signal.SIGTERM)
        code = await asyncio.to_thread(node.popen.wait, 30)
        assert code == 0, f"{name} ended with {code}:\n{self._stage.said()}"
        took = time.time() - began_at
        self._stage.note(f"drain {node.kind}", name, began_at)
        self._stage.start(name)
        return took

    async def kill_backend(self) -> None:
        """Kill -9 of one server process: PostgreSQL drops every session and recovers."""
        began_at = time.time()
        rows = await self._stage.fetch(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'betimes-%' LIMIT 1"
        )
        os.kill(rows[0]["pid"], signal.SIGKILL)
        await self._until_back()
        self._stage.note("kill backend", "postgres", began_at)

    async def restart(self, number: signal.Signals, *, away: float = 0.0) -> None:
        """Stop PostgreSQL, fast (SIGINT) or immediately (SIGQUIT); start it after a while."""
        began_at = time.time()
        postgres = self._stage.postgres
        if number is signal.SIGINT:
            await postgres.stop()
        else:
            assert postgres.pid is not None
            signal_postmaster(postgres.pid, self._stage.place.cluster, number)
            await postgres.watch()
        await asyncio.sleep(away)
        await postgres.start()
        await self._until_back()
        self._stage.note(f"restart {number.name}", "postgres", began_at)

    async def deafen(self) -> None:
        """From now on nobody hears a notification, and nobody can listen again."""
        for node in self._stage.nodes.values():
            node.ear.change(refuse=True)
            node.ear.reset_all()

    async def _send_late(self, more: dict[str, object]) -> None:
        """What the old owner had on its way arrives now: renewals and commits of its epoch."""
        owner, claims = more.get("owner"), self._claims
        if not isinstance(owner, UUID):
            return
        database = await Database.open(
            DatabaseSettings(), dsn=self._stage.dsn, clock=RealClock(), roll=lambda: 0.5
        )
        try:
            far = datetime.now(UTC) + timedelta(hours=1)
            node, ttl = NodeId(owner), timedelta(hours=1)
            for claim in claims:
                still = (await Shards(database, node).renew([(claim, far)], ttl=ttl, now=None)).ours
                done = await Publishing(database, node).publish([Batch(claim, far, [])], now=None)
                if still or not done.lost:
                    self._stage.accepted.append(f"{claim} of {owner} after a takeover")
                else:
                    self._stage.refused += 2
        finally:
            await database.close()

    async def _begin(self, name: str) -> tuple[NodeProcess, float, dict[str, object]]:
        node = self._stage.nodes[name]
        more: dict[str, object] = {}
        if node.kind == "coordinator":
            owner = await self._stage.owner(name)
            rows = await self._stage.fetch(
                "SELECT shard, epoch FROM betimes.shards WHERE owner = $1", owner
            )
            self._claims = [Claim(row["shard"], row["epoch"]) for row in rows]
            more = {"owner": owner, "shards": tuple(row["shard"] for row in rows)}
        return node, time.time(), more

    async def _until_back(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                await self._stage.fetch("SELECT 1")
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.05)
            else:
                self._stage.returned_at = time.time()
                return
        raise AssertionError("PostgreSQL did not come back")


WORKER_PAUSE = TTL + 1.5
