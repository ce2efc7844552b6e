"""What is done to the service. Every fault ends by itself and is written down.

Two lanes break processes, one breaks PostgreSQL, one the target. A process that a fault has is left
alone by the others; the lanes know nothing else of each other, so faults meet.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import asyncpg

from blackbox.cluster import SDK, STARVED_SHARE, Cluster, Process
from blackbox.load import Load
from blackbox.postgres import AWAY, MAX_CONNECTIONS

LATENCIES = (0.02, 0.05, 0.1, 0.25, 0.5)
TAKEOVER_SECONDS = 12.0
"""Lease TTL and two seconds."""

ProcessFault = Callable[[Process], Awaitable[None]]
DatabaseFault = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """What was done to whom, by the machine's clock."""

    kind: str
    whom: str
    began: float
    ended: float


@dataclass
class Faults:
    """The faults of one run."""

    cluster: Cluster
    load: Load
    dice: random.Random
    done: list[Fault] = field(default_factory=list)
    takeovers: list[float] = field(default_factory=list)
    calm: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no fault of PostgreSQL is under way."""
    steps: list[tuple[float, float]] = field(default_factory=list)
    """When the clock of the database was stepped, and to which offset."""
    database_faults: int = 0
    steps_clock: bool = True

    def counts(self) -> Counter[str]:
        """How often each kind was done."""
        return Counter(fault.kind for fault in self.done)

    async def run(self, seconds: float) -> None:
        """Break things for so long; returns when the last fault is healed."""
        self.calm.set()
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            group.create_task(self._processes(until))
            group.create_task(self._processes(until))
            group.create_task(self._database(until))
            group.create_task(self._target(until))

    async def _processes(self, until: float) -> None:
        faults: list[ProcessFault] = [
            self.kill, self.kill, self.freeze, self.freeze, self.terminate, self.latency,
            self.latency, self.cut, self.reset, self.refuse, self.lose_replies, self.starve,
        ]  # fmt: skip
        while time.monotonic() < until:
            free = [one for one in self.cluster.processes.values() if not one.busy and one.alive]
            fault = self.dice.choice(faults)
            if fault == self.starve and not self.cluster.can_starve:
                continue
            if fault == self.lose_replies:
                free = [process for process in free if process.kind != SDK]
            if free:
                process = self.dice.choice(free)
                process.busy = True
                began = time.time()
                try:
                    await fault(process)
                finally:
                    process.busy = False
                name = f"{fault.__name__} {process.kind}"
                self.done.append(Fault(name, process.name, began, time.time()))
            await asyncio.sleep(self.dice.uniform(0.2, 2.0))

    async def _database(self, until: float) -> None:
        faults: list[DatabaseFault] = [
            self.terminate_backends, self.kill_backend, self.restart_fast, self.restart_immediate,
            self.kill_postmaster, self.freeze_postgres, self.exhaust_connections, self.lock_table,
            self.lock_table, self.fill_disk, self.step_clock, self.step_clock,
        ]  # fmt: skip
        if not self.cluster.postgres.can_fill:
            faults.remove(self.fill_disk)
        if not (self.steps_clock and self.cluster.postgres.can_step):
            faults = [fault for fault in faults if fault != self.step_clock]
        order: list[DatabaseFault] = []
        while time.monotonic() < until:
            await asyncio.sleep(self.dice.uniform(4.0, 12.0))
            if not order:  # each of them before any of them again
                order = self.dice.sample(faults, len(faults))
            fault = order.pop()
            began = time.time()
            self.calm.clear()
            self.database_faults += 1
            try:
                with suppress(*AWAY):  # another fault has been there
                    await fault()
                await self.cluster.postgres.until_ready()
            finally:
                self.calm.set()
            self.done.append(Fault(fault.__name__, "postgres", began, time.time()))

    async def _target(self, until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self.dice.uniform(8.0, 20.0))
            mode = self.dice.choice(("error", "reset", "reset", "hang"))
            began = time.time()
            self.cluster.mode.write_text(mode)
            await asyncio.sleep(self.dice.uniform(3.0, 10.0))
            self.cluster.mode.write_text("ok")
            self.done.append(Fault(f"target {mode}", "target", began, time.time()))

    # Processes

    async def kill(self, process: Process) -> None:
        """Kill -9; started again after a while that may be longer than a lease."""
        owned = await self._owned(process)
        process.wanted = False
        process.send(signal.SIGKILL)
        killed = time.monotonic()
        pause = self.dice.uniform(0.5, 16.0)
        if owned:
            await self._measure_takeover(process, owned, killed)
        await asyncio.sleep(max(0.0, pause - (time.monotonic() - killed)))
        process.start()

    async def freeze(self, process: Process) -> None:
        """Stop it, often for longer than its lease, and let it go on with stale beliefs."""
        process.send(signal.SIGSTOP)
        await asyncio.sleep(self.dice.choice((3.0, 9.0, 12.0, 35.0)))
        process.send(signal.SIGCONT)

    async def terminate(self, process: Process) -> None:
        """A drain, as in a rolling restart."""
        process.wanted = False
        process.send(signal.SIGTERM)
        deadline = time.monotonic() + 45
        while process.alive and time.monotonic() < deadline:  # noqa: ASYNC110 -- a process ends
            await asyncio.sleep(0.1)
        process.send(signal.SIGKILL)
        process.start()

    async def latency(self, process: Process) -> None:
        """Every piece is late, in both directions together by 20 to 500 ms."""
        seconds = self.dice.choice(LATENCIES)
        process.proxy.change(latency=(seconds / 2, seconds / 8))
        await asyncio.sleep(self.dice.uniform(8.0, 25.0))
        process.proxy.heal()

    async def cut(self, process: Process) -> None:
        """Nothing passes and nothing is closed; what was under way arrives when it heals."""
        process.proxy.change(half_open=True)
        await asyncio.sleep(self.dice.uniform(3.0, 20.0))
        process.proxy.heal()

    async def reset(self, process: Process) -> None:
        """Every connection is reset, several times."""
        for _ in range(self.dice.randint(1, 5)):
            process.proxy.reset_all()
            await asyncio.sleep(self.dice.uniform(0.1, 1.0))

    async def refuse(self, process: Process) -> None:
        """No new connection, and the old ones are gone."""
        process.proxy.change(refuse=True)
        process.proxy.reset_all()
        await asyncio.sleep(self.dice.uniform(2.0, 12.0))
        process.proxy.heal()

    async def lose_replies(self, process: Process) -> None:
        """Commits arrive, their answers do not."""
        process.proxy.change(swallow_reply=self.dice.choice((b"COMMIT", b"__asyncpg_stmt_")))
        await asyncio.sleep(self.dice.uniform(1.0, 4.0))
        process.proxy.heal()

    async def starve(self, process: Process) -> None:
        """A twentieth of a core."""
        self.cluster.starve(process, share=STARVED_SHARE)
        await asyncio.sleep(self.dice.uniform(8.0, 20.0))
        self.cluster.starve(process, share=None)

    async def _owned(self, process: Process) -> list[int]:
        if process.kind != "coordinator" or not self.calm.is_set():
            return []
        with suppress(*AWAY):
            rows = await self.cluster.fetch(
                "SELECT shard, epoch FROM betimes.shards JOIN betimes.nodes ON nodes.id = owner"
                " WHERE nodes.name = $1 AND lease_until > clock_timestamp()",
                process.name,
            )
            return [row["shard"] for row in rows]
        return []

    async def _measure_takeover(self, killed: Process, shards: list[int], since: float) -> None:
        """How long until others own what it owned; only told if nothing else was broken then."""
        others = [one for one in self.cluster.of("coordinator") if one is not killed]
        faults, left = self.database_faults, set(shards)
        while left and time.monotonic() < since + 2 * TAKEOVER_SECONDS:
            if self.database_faults != faults or any(one.busy or not one.alive for one in others):
                return
            with suppress(*AWAY):
                rows = await self.cluster.fetch(
                    "SELECT shard FROM betimes.shards JOIN betimes.nodes ON nodes.id = owner"
                    " WHERE nodes.name <> $1 AND lease_until > clock_timestamp()",
                    killed.name,
                )
                left -= {row["shard"] for row in rows}
            await asyncio.sleep(0.1)
        self.takeovers.append(time.monotonic() - since)

    # PostgreSQL

    async def terminate_backends(self) -> None:
        """Every session is ended, three times."""
        for _ in range(3):
            with suppress(*AWAY):
                await self.cluster.fetch(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )
            await asyncio.sleep(0.5)

    async def kill_backend(self) -> None:
        """Kill -9 of one session's process: the server drops all of them and recovers."""
        rows = await self.cluster.fetch(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND pid <> pg_backend_pid() LIMIT 1"
        )
        for row in rows:
            with suppress(ProcessLookupError):
                os.kill(row["pid"], signal.SIGKILL)

    async def restart_fast(self) -> None:
        """A shutdown; the service manager starts it again."""
        self.cluster.postgres.signal(signal.SIGINT)
        await asyncio.sleep(self.dice.uniform(0.5, 4.0))

    async def restart_immediate(self) -> None:
        """A shutdown without a checkpoint."""
        self.cluster.postgres.signal(signal.SIGQUIT)
        await asyncio.sleep(self.dice.uniform(0.5, 4.0))

    async def kill_postmaster(self) -> None:
        """Kill -9 of the postmaster, its children follow."""
        self.cluster.postgres.signal(signal.SIGKILL)
        await asyncio.sleep(self.dice.uniform(1.0, 3.0))

    async def freeze_postgres(self) -> None:
        """Nothing answers, nothing is closed."""
        self.cluster.postgres.freeze(frozen=True)
        await asyncio.sleep(self.dice.uniform(2.0, 9.0))
        self.cluster.postgres.freeze(frozen=False)

    async def exhaust_connections(self) -> None:
        """Somebody else takes every connection there is."""
        hoard: list[asyncpg.Connection] = []
        until = time.monotonic() + self.dice.uniform(5.0, 15.0)
        while time.monotonic() < until and len(hoard) < MAX_CONNECTIONS:
            try:
                hoard.append(await asyncpg.connect(self.cluster.postgres.dsn, timeout=2))
            except AWAY:
                await asyncio.sleep(0.2)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        for connection in hoard:
            with suppress(*AWAY):
                connection.terminate()

    async def lock_table(self) -> None:
        """An administrator's ACCESS EXCLUSIVE lock."""
        table = self.dice.choice(("runs", "parcels", "shards", "jobs"))
        async with AsyncExitStack() as stack:
            connection = await asyncpg.connect(self.cluster.postgres.dsn, timeout=5)
            stack.callback(connection.terminate)
            with suppress(asyncpg.PostgresError):
                await connection.execute(
                    f"SET lock_timeout = '5s'; BEGIN; LOCK TABLE betimes.{table}"
                    " IN ACCESS EXCLUSIVE MODE"
                )
                await asyncio.sleep(self.dice.uniform(2.0, 10.0))

    async def fill_disk(self) -> None:
        """No byte is left, for data nor for the log."""
        await asyncio.to_thread(self.cluster.postgres.fill)
        await asyncio.sleep(self.dice.uniform(2.0, 6.0))
        self.cluster.postgres.empty()

    async def step_clock(self) -> None:
        """The database's clock jumps, forward and back again; never behind the machine's."""
        postgres = self.cluster.postgres
        offset = 0.0 if postgres.offset else self.dice.choice((2.0, 15.0, 66.0))
        self.load.steps += 1
        self.load.relived_until = max(self.load.relived_until, self.load.now())
        postgres.step(offset)
        self.steps.append((time.time(), offset))
        await asyncio.sleep(2.0)
