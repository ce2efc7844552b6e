"""Everything between owning a data directory and launching its server. Blocks; run in a thread."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from betimes.domain.errors import Conflict
from betimes.embedded import conf, process
from betimes.embedded.account import Account, account_for, require_way
from betimes.embedded.binaries import Binaries, executable_for, find_binaries
from betimes.embedded.initialise import Initialiser
from betimes.embedded.layout import Layout, socket_directory

CONF_NAME = "betimes.conf"
INCLUDE = f"include = '{CONF_NAME}'"
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the caller asked of the server."""

    password_factory: Callable[[], str]
    binaries: Binaries | None
    listen: str
    port: int
    settings: Mapping[str, str]
    unsafe_no_fsync: bool
    runtime: Path | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cluster that only waits for its server."""

    command: list[str]
    account: Account


def prepare(layout: Layout, wishes: Wishes) -> Prepared:
    """Make or check the cluster, write its settings, and say how to launch it.

    Call only under the owner's lock and with no server running.

    Raises:
        Refused: the directory, the account or the binaries will not do.
        Unavailable: initdb failed.

    """
    binaries = wishes.binaries or find_binaries()
    layout.finish_upgrade()
    account = account_for(layout.cluster)
    require_way(account, layout.data)
    major = layout.found_major()
    if major is not None and major != binaries.major:
        raise _other_major(layout, major, binaries)
    binaries = executable_for(binaries, account, layout.binaries)
    layout.sweep()
    layout.rotate_log()
    _disown_stranger(layout, account)
    _ensure_cluster(layout, wishes, Initialiser(layout=layout, binaries=binaries, account=account))
    _write_settings(layout, wishes, account)
    sockets = socket_directory(layout.data, account, wishes.runtime)
    return Prepared(_command(layout, wishes, binaries, sockets), account)


def _disown_stranger(layout: Layout, account: Account) -> None:
    """Make a stale postmaster.pid harmless that names a living stranger, or nobody at all.

    PostgreSQL would refuse to start while that pid is alive. The file itself must stay: it also
    names the shared memory by which PostgreSQL notices backends that outlived their postmaster.
    """
    file = layout.cluster / "postmaster.pid"
    if not file.exists():
        return
    if process.PidFile.read(layout.cluster) is None:
        file.unlink()  # empty or garbage: it protects nothing and blocks the start
        return
    _, *rest = file.read_text().splitlines()
    account.write(file, "\n".join([str(process.NOBODY), *rest]) + "\n")


def _ensure_cluster(layout: Layout, wishes: Wishes, initialiser: Initialiser) -> None:
    exists = layout.found_major() is not None
    is_new = layout.ensure_password(wishes.password_factory)
    if not exists:
        initialiser.create(password=layout.password.read_text(), sync=not wishes.unsafe_no_fsync)
    elif is_new:  # somebody removed the secret; who may write here may also set a new one
        initialiser.change_password(layout.password.read_text())


def _write_settings(layout: Layout, wishes: Wishes, account: Account) -> None:
    text = conf.render(
        memory_bytes=_memory_bytes(),
        linux=sys.platform == "linux",
        unsafe_no_fsync=wishes.unsafe_no_fsync,
        settings=wishes.settings,
    )
    account.write(layout.cluster / CONF_NAME, text)
    main = layout.cluster / "postgresql.conf"
    said = main.read_text()
    if INCLUDE not in said.splitlines():
        account.write(main, f"{said}\n{INCLUDE}\n")


def _command(layout: Layout, wishes: Wishes, binaries: Binaries, sockets: Path) -> list[str]:
    """On the command line stands what nobody may override, or our own address would be wrong."""
    fixed = {
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "listen_addresses": wishes.listen,
        "port": str(wishes.port),
    }
    options = [word for name, value in fixed.items() for word in ("-c", f"{name}={value}")]
    return [str(binaries.tool("postgres")), "-D", str(layout.cluster), *options]


def _other_major(layout: Layout, major: int, binaries: Binaries) -> Conflict:
    return Conflict(
        f"{layout.cluster} holds the data of PostgreSQL {major}, and the binaries in "
        f"{binaries.directory} are PostgreSQL {binaries.major}. The data was left untouched. "
        f"Either run it with binaries of PostgreSQL {major}, or carry it over: stop everything "
        f"that uses it and run `python -m betimes.embedded.upgrade {layout.data}`, which keeps "
        f"the old data, or dump it with PostgreSQL {major} and restore it into a new directory.",
        code="data_of_other_version",
    )


def _memory_bytes() -> int:
    """The memory of this machine, or of the container when that is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(machine, int(CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no cgroup, or its limit is the word "max"
        return machine
