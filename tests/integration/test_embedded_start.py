"""The embedded server starts from nothing, again, beside another, and over TCP."""

import shutil
import socket
from pathlib import Path

import asyncpg
import pytest

from betimes.domain.errors import BadSetting, Conflict, Refused, Unavailable
from embedded_kit import Place

pytestmark = pytest.mark.db


async def test_an_empty_directory_becomes_a_server_with_our_database(empty_place: Place) -> None:
    """The first start makes the cluster, durable and tuned; the address works as it stands."""
    async with empty_place.server(unsafe_no_fsync=False) as server:
        shown = empty_place.query(
            server.dsn(),
            "select current_database(), current_setting('fsync'), "
            "current_setting('full_page_writes'), current_setting('synchronous_commit'), "
            "current_setting('data_checksums'), current_setting('timezone'), "
            "current_setting('server_encoding'), current_setting('wal_compression')",
        )
        assert shown == "betimes|on|on|on|on|UTC|UTF8|pglz"
        assert not server.attached
    log = server.log_path.read_text(encoding="utf-8")
    assert "database system is shut down" in log
    assert "system is starting up" not in log  # our own questions leave no trace


async def test_starting_twice_is_starting_once(place: Place) -> None:
    server = place.server()
    await server.start()
    try:
        first = server.pid
        await server.start()
        assert server.pid == first
    finally:
        await server.stop()
        await server.stop()
    assert server.pid is None
    with pytest.raises(Unavailable, match="not started"):
        server.dsn()


async def test_rows_and_password_outlive_a_restart(place: Place) -> None:
    async with place.server() as server:
        address = server.dsn()
        place.query(address, "create table kept as select 42 as answer")
    async with place.server() as again:
        assert again.dsn() == address
        assert place.query(address, "select answer from kept") == "42"


async def test_nobody_enters_without_the_password(place: Place) -> None:
    """Neither over the socket nor over loopback; trust appears nowhere."""
    async with place.server() as server:
        rules = place.query(server.dsn(), "select distinct auth_method from pg_hba_file_rules")
        assert rules == "scram-sha-256"
        wrong = server.dsn().replace("postgres:", "postgres:not-", 1)
        with pytest.raises(AssertionError, match="password authentication failed"):
            place.query(wrong, "select 1")
    assert (place.data / "secrets" / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert place.cluster.stat().st_mode & 0o777 == 0o700


async def test_a_lost_password_is_replaced(place: Place) -> None:
    async with place.server() as server:
        before = server.dsn()
    (place.data / "secrets" / "postgres.password").unlink()
    async with place.server() as server:
        assert server.dsn() != before
        assert place.query(server.dsn(), "select 1") == "1"


async def test_tcp_only_when_asked_and_the_address_is_right(place: Place) -> None:
    """`listen` and `port` are obeyed, whatever ALTER SYSTEM says."""
    async with place.server() as server:
        assert place.query(server.dsn(), "show listen_addresses") == ""
        place.query(server.dsn(), "alter system set port = 6666")
        place.query(server.dsn(), "alter system set listen_addresses = '*'")
        with pytest.raises(Refused, match="not asked to listen"):
            server.dsn(tcp=True)
    port = a_free_port()
    async with place.server(listen="127.0.0.1", port=port) as server:
        assert f"@127.0.0.1:{port}/" in server.dsn(tcp=True)
        asked = "select inet_server_port(), current_setting('listen_addresses')"
        assert place.query(server.dsn(tcp=True), asked) == f"{port}|127.0.0.1"
        assert place.query(server.dsn(), "show port") == str(port)


async def test_the_address_is_understood_by_the_driver_of_the_store(place: Place) -> None:
    port = a_free_port()
    async with place.server(listen="127.0.0.1", port=port) as server:
        for address in (server.dsn(), server.dsn(tcp=True)):
            connection = await asyncpg.connect(address)
            assert await connection.fetchval("select current_database()") == "betimes"
            await connection.close()


async def test_who_attaches_cannot_have_another_port(place: Place) -> None:
    async with place.server():
        with pytest.raises(Conflict, match="on its Unix socket only"):
            await place.server(listen="127.0.0.1", port=a_free_port()).start()


def test_other_machines_are_not_served(place: Place) -> None:
    with pytest.raises(BadSetting, match="expected localhost"):
        place.server(listen="0.0.0.0")  # noqa: S104 -- refused is the point


async def test_a_long_path_gets_a_short_private_socket_directory(empty_place: Place) -> None:
    data = empty_place.root / ("deep" * 20) / ("deeper" * 10) / "data"
    data.parent.mkdir(parents=True)
    async with empty_place.server(data=data) as server:
        assert empty_place.query(server.dsn(), "select 1") == "1"
        sockets = empty_place.query(server.dsn(), "show unix_socket_directories")
        assert not sockets.startswith(str(data))
        assert mode_of(sockets) == 0o700
    shutil.rmtree(sockets)


async def test_the_callers_settings_win_over_ours_but_not_over_safety(place: Place) -> None:
    async with place.server(settings={"work_mem": "7MB", "max_connections": "20"}) as server:
        assert place.query(server.dsn(), "show work_mem") == "7MB"
        assert place.query(server.dsn(), "show max_connections") == "20"
    with pytest.raises(BadSetting, match="fsync is managed"):
        place.server(settings={"fsync": "off"})


async def test_a_server_that_cannot_start_says_why_at_once(place: Place) -> None:
    with pytest.raises(Unavailable, match=r"ended with status 1.*max_connections"):
        await place.server(settings={"max_connections": "many"}).start()
    async with place.server() as server:
        assert place.query(server.dsn(), "select 1") == "1"


async def test_data_of_another_major_version_is_refused_and_left_untouched(place: Place) -> None:
    (place.cluster / "PG_VERSION").write_text("13\n")
    before = snapshot(place.cluster)
    with pytest.raises(Conflict, match=r"PostgreSQL 13.*PostgreSQL \d+.*left untouched"):
        await place.server().start()
    assert snapshot(place.cluster) == before


async def test_a_directory_with_other_things_in_it_is_refused(empty_place: Place) -> None:
    empty_place.cluster.mkdir(parents=True)
    (empty_place.cluster / "holiday.jpg").touch()
    empty_place.data.chmod(0o711)
    with pytest.raises(Conflict, match="neither empty nor a PostgreSQL cluster"):
        await empty_place.server().start()


async def test_the_log_stays_bounded(place: Place) -> None:
    async with place.server() as server:
        pass
    with server.log_path.open("a") as log:
        log.truncate(11 * 2**20)
    async with place.server():
        assert server.log_path.stat().st_size < 2**20
    assert (place.data / "postgres.log.1").stat().st_size == 11 * 2**20


def snapshot(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file's mode, time and content."""
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def mode_of(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
