"""Behind pgbouncer in transaction mode, with one server connection for everybody."""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import UUID

import asyncpg
import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import BadSetting
from betimes.store.database import API_ROLE, Database
from betimes.store.listen import Listener
from betimes.store.partitions import PARENTS, Partitions
from betimes.store.pool import SYSTEM_ROLE, TRANSACTION_TIMEOUT_SINCE, Connection, Lane
from betimes.store.queries import load
from betimes.testing import ManualClock, Signal
from betimes.testing.postgres import socket_of, through
from store_kit import HurriedClock, eventually, half, make_probe, opened, owner, probe

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.defpath}:/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")

SQL = load("server")
A, B = UUID(int=0xA), UUID(int=0xB)
SETTINGS = """
[databases]
* = host={sockets}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 1
max_client_conn = 100
server_reset_query =
logfile = {folder}/log
"""


def free_port() -> int:
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        return int(probe_socket.getsockname()[1])


def write_settings(folder: Path, dsn: str, port: int) -> int:
    """Everything pgbouncer reads, owned by the account that owns the server; returns its number."""
    account = urlsplit(dsn)
    (folder / "users").write_text(f'"{account.username}" "{unquote(account.password or "")}"\n')
    sockets = socket_of(dsn).parent
    (folder / "ini").write_text(SETTINGS.format(sockets=sockets, port=port, folder=folder))
    uid = socket_of(dsn).stat().st_uid
    for path in (folder, folder / "users", folder / "ini"):
        os.chown(path, uid, -1)
    return uid


def start_pooler(folder: Path, dsn: str, port: int) -> "subprocess.Popen[bytes]":
    assert PGBOUNCER is not None
    uid = write_settings(folder, dsn, port)
    user = uid if os.geteuid() == 0 else None  # it refuses to run as root
    return subprocess.Popen([PGBOUNCER, "-q", folder / "ini"], user=user)


@pytest.fixture
async def pooled(dsn: str) -> AsyncIterator[str]:
    """The address of the test's database through a pooler of its own."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-pooler-"))
    port = free_port()
    running = start_pooler(folder, dsn, port)
    try:
        await eventually(partial(answers, through(dsn, port)), what="pgbouncer answers")
        yield through(dsn, port)
    finally:
        running.terminate()
        running.wait(timeout=10)
        shutil.rmtree(folder)


async def answers(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn, timeout=1)
    except OSError:
        return False
    await connection.close()
    return True


async def server_processes(dsn: str) -> int:
    async with owner(dsn) as connection:
        return int(
            await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        )


async def test_with_the_switch_everything_works_under_concurrency(dsn: str, pooled: str) -> None:
    await make_probe(dsn)

    async def add(connection: Connection) -> None:
        await connection.execute("UPDATE betimes.probe SET n = n + $1::integer WHERE id = 1", 1)

    async with opened(f"{pooled}&pgbouncer=true") as database:
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                lane = list(Lane)[number % len(Lane)]
                group.create_task(database.transact(add, lane=lane, repeatable=False))
                group.create_task(database.many(SQL["read_clock"], lane=lane))
        assert await server_processes(dsn) == 1
        assert await Partitions(database).ensure(
            ManualClock().now().date(), ahead_days=0
        ) == 2 * len(PARENTS)
    assert (await probe(dsn))[1] == 40


async def test_tenants_on_one_server_connection_do_not_meet(dsn: str, pooled: str) -> None:
    async with owner(dsn) as connection:
        for tenant in (A, B):
            await connection.execute(
                "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, $2, 'x')",
                tenant,
                f"t{tenant.int}",
            )

    async def look(connection: Connection, tenant: UUID | None) -> None:
        seen = {row["id"] for row in await connection.fetch("SELECT id FROM betimes.tenants")}
        who = await connection.fetchval("SELECT current_user::text")
        assert seen == {tenant} if tenant else {A, B} < seen
        assert who == (API_ROLE if tenant else SYSTEM_ROLE)

    async with (
        opened(pooled, pgbouncer=True) as database,
        asyncio.TaskGroup() as group,
    ):
        for number in range(45):
            one: UUID | None = (A, B, None)[number % 3]
            work = partial(look, tenant=one)
            group.create_task(database.transact(work, lane=Lane.API, repeatable=True, tenant=one))


async def test_every_transaction_carries_its_own_bounds(pooled: str) -> None:
    async def bounds(connection: Connection) -> list[str]:
        names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
        if database.server_version >= TRANSACTION_TIMEOUT_SINCE:
            names.append("transaction_timeout")
        return [str(await connection.fetchval("SELECT current_setting($1)", n)) for n in names]

    async with opened(pooled, pgbouncer=True) as database:
        found = await database.transact(bounds, lane=Lane.API, repeatable=True)
    assert found[:3] == ["5s", "1s", "5s"]
    assert set(found[3:]) <= {"5s"}
    connection = await asyncpg.connect(pooled, statement_cache_size=0)
    assert await connection.fetchval("SELECT current_setting('statement_timeout')") == "0"
    await connection.close()


async def test_without_the_switch_the_error_names_it(pooled: str) -> None:
    with pytest.raises(BadSetting, match="pgbouncer=true"):
        await Database.open(DatabaseSettings(), dsn=pooled, clock=HurriedClock(), roll=half)


async def test_hints_need_a_direct_address(dsn: str, pooled: str) -> None:
    heard: Signal[str] = Signal()
    listener = Listener(
        dsn=dsn,
        settings=DatabaseSettings(pgbouncer=True),
        channels=["betimes_probe"],
        hear=lambda _, payload: heard.send(payload),
        clock=ManualClock(),
        roll=half,
    )
    async with opened(f"{pooled}&pgbouncer=true") as database, asyncio.TaskGroup() as group:
        running = group.create_task(listener.run())
        assert await heard.wait() == ""
        await database.many(
            SQL["send_hint"], lane=Lane.API, channel="betimes_probe", payload="through"
        )
        assert await heard.wait() == "through"
        running.cancel()
