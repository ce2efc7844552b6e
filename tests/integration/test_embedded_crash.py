"""Deaths: of the owner, of the keeper, of the server, of initdb. Nothing acknowledged is lost."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from betimes.domain.errors import Unavailable
from betimes.embedded.process import leftovers_of
from embedded_kit import Owner, Place, alive, until

pytestmark = pytest.mark.db


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_the_server_dies_with_its_owner(place: Place, number: signal.Signals) -> None:
    """However the owner ends, the server stops cleanly within seconds and can be started again."""
    owner = Owner(place)
    _, pid = owner.said()
    owner.kill(number)
    until(lambda: not alive(pid), what="the server to follow its owner", seconds=10)
    assert "received fast shutdown request" in (place.data / "postgres.log").read_text()
    async with place.server() as server:
        assert not server.attached
        assert place.query(server.dsn(), "select 1") == "1"


async def test_a_thread_that_ends_does_not_take_the_server_along(place: Place) -> None:
    """Linux sends the death signal of a parent when its *thread* ends; the keeper has only one."""
    owner = Owner(place, "--threaded")
    word, pid = owner.said()
    try:
        assert word == "ready"
        async with place.server() as server:
            assert server.attached
            assert place.query(server.dsn(), "select 1") == "1"
            assert alive(pid)
    finally:
        owner.kill()


async def test_every_acknowledged_row_survives_a_kill_of_the_whole_group(place: Place) -> None:
    """Owner and clients are killed amid commits; what psql had reported as committed is there."""
    owner = Owner(place)
    owner.said()
    async with place.server() as server:
        address = server.dsn()
        place.query(address, "create table acknowledged (n bigint primary key)")
    writer = a_writer(place, address, group=owner.process.pid)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(300)]
    owner.kill()
    acknowledged += [int(line) for line in writer.communicate(timeout=30)[0].split()]

    async with place.server(unsafe_no_fsync=False) as server:
        there = place.query(server.dsn(), "select n from acknowledged").split()
    assert set(acknowledged) <= {int(n) for n in there}


async def test_every_acknowledged_row_survives_a_kill_of_the_server(place: Place) -> None:
    """All server processes are killed at once, so the next start must recover from the log."""
    async with place.server(unsafe_no_fsync=False) as server:
        place.query(server.dsn(), "create table acknowledged (n bigint primary key)")
        writer = a_writer(place, server.dsn())
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(300)]
        for pid in leftovers_of(place.cluster):
            os.kill(pid, signal.SIGKILL)
        acknowledged += [int(line) for line in writer.communicate(timeout=30)[0].split()]

        assert "gone" in await asyncio.wait_for(server.watch(), timeout=10)
        await server.start()
        there = place.query(server.dsn(), "select n from acknowledged").split()
        assert "automatic recovery in progress" in server.log_path.read_text()
    assert set(acknowledged) <= {int(n) for n in there}


async def test_a_killed_postmaster_leaves_no_writer_behind(place: Place) -> None:
    """Only the postmaster dies; the next start waits for its backends before it touches a thing."""
    async with place.server() as server:
        assert server.pid is not None
        place.query(server.dsn(), "create table t as select 1 as n")
        busy = a_busy_client(place, server.dsn())
        asked = "select count(*) from pg_stat_activity where query like '%loop null%'"
        until(lambda: place.query(server.dsn(), asked) == "2", what="a busy backend")
        os.kill(server.pid, signal.SIGKILL)
        await server.watch()
        await server.start()
        assert place.query(server.dsn(), "select n from t") == "1"
        assert busy.wait(timeout=10) != 0


async def test_a_killed_keeper_takes_the_server_along(place: Place) -> None:
    """Nothing is left unsupervised, and a start brings everything back."""
    async with place.server() as server:
        first = server.pid
        assert first is not None
        status = Path(f"/proc/{first}/status").read_text()  # noqa: ASYNC240
        keeper = next(line for line in status.splitlines() if line.startswith("PPid"))
        os.kill(int(keeper.split()[1]), signal.SIGKILL)
        until(lambda: not alive(first), what="the server to follow its keeper", seconds=10)
        await server.watch()
        await server.start()
        assert server.pid != first
        assert place.query(server.dsn(), "select 1") == "1"


async def test_who_attached_can_take_over_when_the_owner_dies(place: Place) -> None:
    owner = Owner(place)
    _, pid = owner.said()
    async with place.server() as server:
        assert server.attached
        assert server.pid == pid
        owner.kill()
        assert "gone" in await asyncio.wait_for(server.watch(), timeout=10)
        await server.start()
        assert not server.attached
        assert place.query(server.dsn(), "select 1") == "1"


async def test_who_attached_leaves_without_stopping_it(place: Place) -> None:
    async with place.server() as server:
        async with place.server() as guest:
            assert guest.attached
            assert guest.pid == server.pid
            assert guest.dsn() == server.dsn()
        assert place.query(server.dsn(), "select 1") == "1"


async def test_two_who_start_together_share_one_server(empty_place: Place) -> None:
    one, two = empty_place.server(), empty_place.server()
    async with asyncio.TaskGroup() as group:
        group.create_task(one.start())
        group.create_task(two.start())
    try:
        assert one.pid == two.pid
        assert one.attached != two.attached
    finally:
        await asyncio.gather(one.stop(), two.stop())


async def test_an_interrupted_initdb_leaves_nothing_that_matters(empty_place: Place) -> None:
    """Killed amid initdb, the directory is as good as empty, and the next start cleans it up."""
    owner = Owner(empty_place)
    until(lambda: any(empty_place.data.glob("init-*/account/pg/base")), what="initdb to be at work")
    owner.kill()
    assert not empty_place.cluster.exists()
    async with empty_place.server() as server:
        assert empty_place.query(server.dsn(), "select 1") == "1"
    until(lambda: not any(empty_place.data.glob("init-*")), what="the sweep", seconds=5)


async def test_a_cancelled_start_leaves_nothing_running(empty_place: Place) -> None:
    server = empty_place.server()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(server.start(), timeout=0.05)
    assert server.pid is None
    assert leftovers_of(empty_place.cluster) == []
    async with empty_place.server() as again:
        assert not again.attached


async def test_recovery_is_waited_for_as_long_as_it_shows_progress(place: Place) -> None:
    """Twice the patience passes, with words in the log; that is no reason to give up."""
    slow = a_slow_postgres(
        place, 'for i in 1 2 3 4 5 6 7 8; do sleep 0.4; echo "redo in progress"; done'
    )
    async with slow.server(patience=1.6) as server:
        assert place.query(server.dsn(), "select 1") == "1"


async def test_a_start_that_falls_silent_fails_and_is_cleared_away(place: Place) -> None:
    silent = a_slow_postgres(place, "echo $$; exec sleep 3600")
    with pytest.raises(Unavailable, match="fell silent") as refusal:
        await silent.server(patience=2.0).start()
    assert not alive(int(str(refusal.value).split()[-1]))


def a_slow_postgres(place: Place, before: str) -> Place:
    """The same place, served by a postgres that first does something else."""
    directory = place.root / "slow"
    directory.mkdir()
    for tool in place.binaries.directory.iterdir():
        (directory / tool.name).symlink_to(tool)
    script = directory / "postgres"
    script.unlink()
    script.write_text(
        f'#!/bin/sh\n[ "$1" = -D ] && {{ {before}; }}\n'
        f'exec {place.binaries.tool("postgres")} "$@"\n'
    )
    script.chmod(0o755)
    directory.chmod(0o755)
    slow = place.binaries.__class__(directory, place.binaries.major, "slow", "slow")
    return Place(place.root, slow)


def a_busy_client(place: Place, dsn: str) -> subprocess.Popen[bytes]:
    """A client whose backend counts for hours without ever waiting for anything."""
    endless = "do $$ begin loop null; end loop; end $$"
    return subprocess.Popen(
        [place.binaries.tool("psql"), "-Xc", endless, dsn],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def a_writer(place: Place, dsn: str, *, group: int | None = None) -> subprocess.Popen[str]:
    """One psql that commits row after row and prints each number once it is committed."""
    psql = subprocess.Popen(
        [place.binaries.tool("psql"), "-XAtq", dsn, "-v", "ON_ERROR_STOP=1", "-f", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=group,
    )
    assert psql.stdin is not None
    # An insert outside a transaction answers after its commit; only then comes the echo.
    insert = "insert into acknowledged values ({0});\n\\echo {0}\n"
    statements = (insert.format(n) for n in range(1200))
    psql.stdin.write("".join(statements) + "select pg_sleep(60);\n")
    psql.stdin.close()
    psql.stdin = None
    return psql
