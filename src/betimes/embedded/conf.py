"""The settings of the embedded server, as text. Pure."""

import ipaddress
import re
from collections.abc import Mapping

from betimes.domain.errors import BadSetting

MEBIBYTE = 2**20
BUFFERS_MIN, BUFFERS_MAX, MEMORY_SHARE = 64, 1024, 8
NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
HEADER = "# Written by betimes at every start; changes made here are lost.\n"
DURABLE = ("fsync", "full_page_writes")
OURS = frozenset(
    {
        *DURABLE,
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "log_destination",
        "logging_collector",
        "port",
        "unix_socket_directories",
        "unix_socket_permissions",
    }
)

# Scram everywhere and only from this machine; `local` is the socket in our private directory.
HBA = """\
# Written by betimes when the cluster was made.
local   all          all                  scram-sha-256
host    all          all   127.0.0.1/32   scram-sha-256
host    all          all   ::1/128        scram-sha-256
local   replication  all                  scram-sha-256
"""

TUNED: Mapping[str, str] = {
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "max_connections": "100",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "pglz",  # the wheels are built without lz4 and zstd
    "jit": "off",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "10s",
    "idle_in_transaction_session_timeout": "5min",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "log_destination": "stderr",
    "logging_collector": "off",  # our log file is its stderr
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
    "log_lock_waits": "on",
    # Recovery reports itself this often; the supervisor waits as long as it does.
    "log_startup_progress_interval": "2s",
}


def render(
    *, memory_bytes: int, linux: bool, unsafe_no_fsync: bool, settings: Mapping[str, str]
) -> str:
    """The managed include file: durable, tuned, then what the caller asked for.

    Raises:
        BadSetting: a name that is none, a value that cannot be written, or one of ours.

    """
    durable = "off" if unsafe_no_fsync else "on"
    chosen = {
        **dict.fromkeys(DURABLE, durable),
        **TUNED,
        "shared_buffers": f"{buffers_mebibytes(memory_bytes)}MB",
        **({"effective_io_concurrency": "16"} if linux else {}),
        **checked(settings),
    }
    return HEADER + "".join(f"{name} = {quoted(value)}\n" for name, value in chosen.items())


def buffers_mebibytes(memory_bytes: int) -> int:
    """An eighth of the memory, within bounds: the service and its users live here as well."""
    share = memory_bytes // MEMORY_SHARE // MEBIBYTE
    return min(max(share, BUFFERS_MIN), BUFFERS_MAX)


def checked(settings: Mapping[str, str]) -> Mapping[str, str]:
    """The caller's settings, or a refusal that names the bad one."""
    for name, value in settings.items():
        if not NAME.fullmatch(name):
            raise BadSetting(f"expected the name of a PostgreSQL setting, got {name!r}")
        if name in OURS:
            raise BadSetting(f"the PostgreSQL setting {name} is managed by betimes, got {value!r}")
        if not value.isprintable():
            raise BadSetting(f"expected one printable line for {name}, got {value!r}")
    return settings


def quoted(value: str) -> str:
    """A value as postgresql.conf reads it; there a backslash escapes as well."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def loopback(listen: str) -> str:
    """The addresses to listen on, all on this machine.

    The embedded server has no TLS and a superuser; other machines are served by a real one.

    Raises:
        BadSetting: an address that other machines can reach, or that is none.

    """
    for address in (part.strip() for part in listen.split(",")):
        try:
            local = address == "localhost" or ipaddress.ip_address(address).is_loopback
        except ValueError:
            local = False
        if not local:
            raise BadSetting(
                f"expected localhost, 127.0.0.1 or ::1 for the embedded PostgreSQL to listen on, "
                f"got {address!r}. To serve other machines, run a PostgreSQL server of your own."
            )
    return listen
