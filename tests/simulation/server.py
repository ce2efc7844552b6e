"""A real PostgreSQL whose clock and chance belong to the simulated world.

One database per process, emptied before each seed. Sessions are those of the product, with its
settings for each lane; statements are made synchronously, so that they take no virtual time.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from betimes.store.migrate import SQL as MIGRATIONS
from betimes.store.partitions import PARENTS
from betimes.store.pool import PLANS, SYSTEM_ROLE, CheckedSession, Lane
from betimes.testing.postgres import PostgresKit
from simulation.driver import DrivingLoop

T = TypeVar("T")
FIRST_DAY = date(2026, 3, 9)
DAYS = 5
LOCK_TIMEOUT = "30ms"
"""Who waits for a lock here waits for ever: nothing else happens meanwhile."""
ALWAYS = {"migrations", "tenants"}
"""What is the same for every seed; whoever is asked about a tenant only reads."""
KEPT = {"cluster", "shards", *ALWAYS}


async def make_template(kit: PostgresKit) -> str:
    """A migrated database that lives in virtual time; its name."""
    name = await kit.create()
    connection = await asyncpg.connect(kit.dsn(name))
    try:
        script = (Path(__file__).parent / "simulation.sql").read_text(encoding="utf-8")
        await connection.execute(script)
        for parent in PARENTS:
            for number in range(-1, DAYS):
                day = FIRST_DAY + number * timedelta(days=1)
                await connection.execute("SELECT betimes.ensure_partition($1, $2)", parent, day)
        await connection.execute("CREATE SCHEMA base")
        for table in await _filled(connection):
            await connection.execute(f"CREATE TABLE base.{table} AS TABLE betimes.{table}")
    finally:
        await connection.close()
    return name


async def _filled(connection: Any) -> list[str]:
    """Tables that are not empty."""
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'betimes'::regnamespace"
        " AND relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY 1"
    )
    return [row["relname"] for row in rows]


class Server:
    """The sessions of one process to its database."""

    def __init__(self, dsn: str, *, cpu: int | None = None) -> None:
        self._dsn = dsn
        self._cpu = cpu
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        self._loop = DrivingLoop()
        self._free: dict[Lane, list[Any]] = {lane: [] for lane in Lane}
        self._owner = self._loop.as_task(asyncpg.connect(dsn))
        self._base = [
            row["tablename"]
            for row in self.call(
                lambda: self._owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname='base'")
            )
            if row["tablename"] not in KEPT
        ]
        self._fresh = ""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do something with the driver, now; nobody else moves meanwhile."""
        return self._loop.drive(work())

    def keep(self, session: Any, statement: str) -> None:
        """Send a statement without an answer together with the next one of a session."""
        session._transport.keep(statement)

    def forget(self, session: Any) -> bool:
        """Whether a session had kept something, and sends it no more."""
        return bool(session._transport.forget())

    def close(self) -> None:
        """Leave."""
        for session in [self._owner, *(one for free in self._free.values() for one in free)]:
            session.terminate()

    def take(self, lane: Lane) -> Any:
        """A session of a lane, outside any transaction."""
        free = self._free[lane]
        return free.pop() if free else self._loop.as_task(self._open(lane))

    def give(self, lane: Lane, session: Any) -> None:
        """A session whose transaction has ended."""
        self._free[lane].append(session)

    async def _open(self, lane: Lane) -> Any:
        settings = {
            "application_name": f"simulation-{lane}",
            "jit": "off",
            "role": SYSTEM_ROLE,
            "lock_timeout": LOCK_TIMEOUT,
            "synchronous_commit": "off",
            "search_path": "sim, pg_catalog",
            "plan_cache_mode": "force_generic_plan",
            **PLANS.get(lane, {}),
        }
        session = await asyncpg.connect(
            self._dsn,
            connection_class=CheckedSession,
            server_settings=settings,
            statement_cache_size=1_000,
            max_cached_statement_lifetime=0,
        )
        await session.execute(self._fresh)
        if self._cpu is not None:
            # We wait for it and it for us, never both at work: one core wakes up faster than two.
            with suppress(OSError):
                os.sched_setaffinity(session.get_server_pid(), {self._cpu})
        return session

    def reset(self, *, shards: int, now: datetime) -> None:
        """An empty cell of so many shards."""
        self.call(lambda: self._reset(shards, now))
        # Plans and their estimates are those of this seed, not of who came before.
        self._fresh = f"DISCARD PLANS; SET sim.now = '{now.isoformat()}'"
        for free in self._free.values():
            for session in free:
                self.call(lambda session=session: session.execute(self._fresh))  # type: ignore[misc]

    async def _reset(self, shards: int, now: datetime) -> None:
        owner = self._owner
        filled = [f"betimes.{name}" for name in await _filled(owner) if name not in ALWAYS]
        tables = ", ".join(["sim.history", *filled])
        await owner.execute(
            f"BEGIN; SELECT setval('sim.chance', 1, false);"
            f" SET LOCAL search_path = sim, pg_catalog; SET LOCAL sim.now = '{now.isoformat()}';"
            f" TRUNCATE {tables} RESTART IDENTITY;"
            + "".join(f" INSERT INTO betimes.{one} TABLE base.{one};" for one in self._base)
        )
        await owner.execute(MIGRATIONS["initialise_cluster"].text, shards)
        await owner.execute(MIGRATIONS["initialise_shards"].text)
        await owner.execute("COMMIT")

    def read(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        """Look at the database from outside the world."""
        return self.call(lambda: self._owner.fetch(statement, *arguments))

    def write(self, statement: str, *arguments: object) -> None:
        """Change the database from outside the world."""
        self.call(lambda: self._owner.execute(statement, *arguments))


def midnight(day: int = 1) -> datetime:
    """The beginning of one of the days that have partitions."""
    return datetime.combine(FIRST_DAY, datetime.min.time(), UTC) + timedelta(days=day)


def run_outside(work: Callable[[], Awaitable[T]]) -> T:
    """Run something on a loop of its own."""

    async def doing() -> T:
        return await work()

    return asyncio.run(doing())
