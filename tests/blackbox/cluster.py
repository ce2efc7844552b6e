"""The service as processes: two of each role, each behind proxies of its own."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from betimes.testing.proxy import FaultProxy
from blackbox.api import Api, Unclear
from blackbox.postgres import AS_ROOT, Postgres

TESTS = Path(__file__).parent.parent
ROLES = ("api", "coordinator", "worker", "janitor", "dispatcher")
SDK, DIRECT = TASK_KINDS = ("sdk", "direct")
"""Workers of an application over HTTP, and on the database."""
SHARDS = 64
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
STARVED_SHARE = 0.05
PERIOD_MICROSECONDS = 100_000
START_SECONDS = 60.0
STARTING_SECONDS = 20.0
SETTINGS = {
    "target.loopback": "true",
    "janitor.reap_every": "1s",
    "janitor.partitions_every": "1s",
    "janitor.prune_every": "1s",
    "worker.slots": "100",
    "api.pepper": "chaos chaos chaos chaos chaos chaos",
}


@dataclass
class Process:
    """One process of the service, kept alive as a service manager would."""

    name: str
    kind: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    proxy: FaultProxy
    port: int = 0
    popen: "subprocess.Popen[bytes] | None" = None
    wanted: bool = False
    busy: bool = False
    """A fault has it; no other fault takes it meanwhile."""
    starts: int = 0
    started_at: float = 0.0
    deaths: int = 0
    """How often it ended although nobody had asked for it."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.popen is not None and self.popen.poll() is None

    def start(self) -> None:
        """Start it, or start it again."""
        self.wanted = True
        self.starts += 1
        self.started_at = time.monotonic()
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                self.command, env=self.environment, cwd=self.log.parent, stdout=log, stderr=log
            )

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if there is anybody to get it."""
        if self.alive:
            assert self.popen is not None
            self.popen.send_signal(number)


@dataclass
class Cluster:
    """Everything of one run."""

    root: Path
    postgres: Postgres
    processes: dict[str, Process] = field(default_factory=dict)
    key: str = ""
    healthy_port: int = 0
    faulty_port: int = 0
    target: "subprocess.Popen[bytes] | None" = None

    @property
    def ledger(self) -> Path:
        """Where targets and tasks write."""
        return self.root / "ledger.jsonl"

    @property
    def mode(self) -> Path:
        """What the faulty origin does now."""
        return self.root / "mode"

    @property
    def can_starve(self) -> bool:
        """Whether a process can be given a share of a core."""
        return AS_ROOT and CPU_GROUPS.is_dir() and os.access(CPU_GROUPS, os.W_OK)

    def of(self, kind: str) -> list[Process]:
        """The processes of one kind."""
        return [process for process in self.processes.values() if process.kind == kind]

    def apis(self) -> list[Api]:
        """Every address of the service."""
        return [Api(process.port, self.key) for process in self.of("api")]

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        """Ask the database directly, past every proxy."""
        connection = await asyncpg.connect(self.postgres.dsn, timeout=10)
        try:
            return await connection.fetch(statement, *arguments, timeout=120)
        finally:
            connection.terminate()

    async def keep(self) -> None:
        """What a service manager does: start again whatever died."""
        while True:
            await asyncio.sleep(0.2)
            for process in self.processes.values():
                if process.wanted and not process.alive:
                    # Who cannot start because the database is away says so and is started again.
                    lived = time.monotonic() - process.started_at
                    process.deaths += lived > STARTING_SECONDS
                    process.start()

    def starve(self, process: Process, *, share: float | None) -> None:
        """Give a process this share of a core, or all it wants again."""
        group = CPU_GROUPS / f"betimes-chaos-{os.getpid()}-{process.name}"
        group.mkdir(exist_ok=True)
        quota = -1 if share is None else int(share * PERIOD_MICROSECONDS)
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
        if process.alive:
            assert process.popen is not None
            (group / "cgroup.procs").write_text(str(process.popen.pid))

    def events(self) -> list[dict[str, Any]]:
        """Every line that the service has logged."""
        found = []
        for process in self.processes.values():
            for line in process.log.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    with suppress(ValueError):
                        found.append({"process": process.name, **json.loads(line)})
        return found


@asynccontextmanager
async def a_cluster(
    *,
    keep_files: bool = False,
    offset_seconds: float = 0.0,
    roles: Sequence[str] = ROLES,
    copies: int = 2,
) -> AsyncIterator[Cluster]:
    """Start everything, keep it alive, stop it; nothing is left behind."""
    root = Path(tempfile.mkdtemp(prefix="betimes-chaos-"))
    root.chmod(0o755)  # noqa: ASYNC240 -- before anything runs
    postgres = Postgres(root, offset_seconds=offset_seconds)
    cluster = Cluster(root, postgres)
    keepers: list[asyncio.Task[None]] = []
    proxies: list[FaultProxy] = []
    try:
        postgres.create()
        postgres.start()
        await postgres.until_ready()
        await _create_database(postgres)
        _start_target(cluster)
        await _start_service(cluster, proxies, roles, copies)
        keepers = [asyncio.create_task(cluster.keep()), asyncio.create_task(postgres.keep())]
        yield cluster
    finally:
        for keeper in keepers:
            keeper.cancel()
        await _stop(cluster, proxies)
        if keep_files:
            sys.stderr.write(f"kept: {root}\n")
        else:
            shutil.rmtree(root, ignore_errors=True)


async def _create_database(postgres: Postgres) -> None:
    connection = await asyncpg.connect(postgres.dsn, database="postgres")
    try:
        await connection.execute("CREATE DATABASE betimes")
    finally:
        await connection.close()


def _start_target(cluster: Cluster) -> None:
    cluster.mode.write_text("ok")
    cluster.ledger.touch()
    cluster.target = subprocess.Popen(
        [sys.executable, "-m", "blackbox.target", str(cluster.ledger), str(cluster.mode)],
        env=_environment(cluster), stdout=subprocess.PIPE,
    )  # fmt: skip
    assert cluster.target.stdout is not None
    cluster.healthy_port, cluster.faulty_port = map(int, cluster.target.stdout.readline().split())


async def _start_service(
    cluster: Cluster, proxies: list[FaultProxy], roles: Sequence[str], copies: int
) -> None:
    """Migrate with the first process, then start the others and wait for all."""
    settings = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    migration = [
        sys.executable,
        "-m",
        "betimes",
        "server",
        "migrate",
        "--dsn",
        cluster.postgres.dsn,
    ]
    await _run(cluster, [*migration, *settings])
    bootstrap = [sys.executable, "-m", "betimes", "key", "bootstrap", "--dsn", cluster.postgres.dsn]
    said = await _run(cluster, [*bootstrap, *settings])
    cluster.key = next(word for word in said.split() if word.startswith("bt_") or "ak_" in word)
    for kind in roles:
        for number in range(1, copies + 1):
            proxy = await FaultProxy(cluster.postgres.socket, seed=number).__aenter__()
            proxies.append(proxy)
            dsn = f"postgresql://betimes@127.0.0.1:{proxy.port}/betimes"
            port = _free_port()
            name = f"{kind}{number}"
            command = [
                sys.executable, "-m", "betimes", "server", "start", "--dsn", dsn, "--roles", kind,
                "--node", name, "--listen", "127.0.0.1", "--port", str(port),
                "--log-format", "json", *settings,
            ]  # fmt: skip
            log = cluster.root / f"{name}.log"
            cluster.processes[name] = Process(
                name, kind, command, _environment(cluster), log, proxy, port
            )
            cluster.processes[name].start()
    await _until_serving(cluster)
    for number in range(1, copies + 1):
        upstream = ("127.0.0.1", cluster.processes[f"api{number}"].port)
        over_http = await FaultProxy(upstream, seed=number).__aenter__()
        _start_tasks(
            cluster, f"{SDK}{number}", SDK, over_http, "--url", f"http://127.0.0.1:{over_http.port}"
        )
        to_database = await FaultProxy(cluster.postgres.socket, seed=number).__aenter__()
        dsn = f"postgresql://betimes@127.0.0.1:{to_database.port}/betimes"
        _start_tasks(cluster, f"{DIRECT}{number}", DIRECT, to_database, "--dsn", dsn, *settings)
        proxies += [over_http, to_database]
    await _until_working(cluster)


def _start_tasks(cluster: Cluster, name: str, kind: str, proxy: FaultProxy, *way: str) -> None:
    """A worker of an application; each way to the service has a queue of its own."""
    command = [
        sys.executable, "-m", "betimes", "worker", "run", "blackbox.tasks:app", "-q", kind,
        "-c", "40", "--name", name, *way,
    ]  # fmt: skip
    environment = {
        **_environment(cluster),
        "BETIMES_API_KEY": cluster.key,
        "BLACKBOX_LEDGER": str(cluster.ledger),
    }
    log = cluster.root / f"{name}.log"
    cluster.processes[name] = Process(name, kind, command, environment, log, proxy)
    cluster.processes[name].start()


async def _until_working(cluster: Cluster) -> None:
    """All application workers have registered."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        wanted = {process.name for kind in TASK_KINDS for process in cluster.of(kind)}
        workers = await cluster.fetch("SELECT name FROM betimes.workers")
        missing = wanted - {worker["name"] for worker in workers}
        if not missing:
            return
        if time.monotonic() > deadline:
            logs = [
                f"--- {name}\n" + cluster.processes[name].log.read_text(errors="replace")[-3000:]
                for name in sorted(missing)
            ]
            raise RuntimeError("application workers did not register:\n" + "\n".join(logs))
        await asyncio.sleep(0.3)


async def _until_serving(cluster: Cluster) -> None:
    """Every shard has an owner, and both addresses answer."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            answers = [await api.ask("GET", "/v1/jobs") for api in cluster.apis()]
            owned = await cluster.fetch(
                "SELECT count(*) AS shards FROM betimes.shards"
                " WHERE lease_until > clock_timestamp()"
            )
            if all(answer.ok for answer in answers) and owned[0]["shards"] == SHARDS:
                return
            said = f"{[answer.status for answer in answers]}, {owned[0]['shards']} shards owned"
        except (Unclear, OSError, asyncpg.PostgresError) as error:
            said = repr(error)
        if time.monotonic() > deadline:
            logs = "\n".join(
                f"--- {process.name}\n{process.log.read_text(errors='replace')[-1500:]}"
                for process in cluster.processes.values()
            )
            raise RuntimeError(f"the service did not start: {said}\n{logs}")
        await asyncio.sleep(0.3)


async def _run(cluster: Cluster, command: list[str]) -> str:
    running = await asyncio.create_subprocess_exec(
        *command, env=_environment(cluster), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await running.communicate()
    if running.returncode:
        raise RuntimeError(f"{command[3:6]} failed:\n{out.decode()}\n{err.decode()}")
    return out.decode()


def _environment(cluster: Cluster) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return {**kept, "HOME": str(cluster.root), "PYTHONPATH": paths}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _stop(cluster: Cluster, proxies: list[FaultProxy]) -> None:
    """Ask everybody to stop; who does not within a while is ended, by its own pid."""
    for process in cluster.processes.values():
        process.wanted = False
        process.proxy.heal()
        process.send(signal.SIGCONT)
        process.send(signal.SIGTERM)
    for process in cluster.processes.values():
        if process.popen is not None:
            await asyncio.to_thread(_end, process.popen)
        with suppress(OSError):
            (CPU_GROUPS / f"betimes-chaos-{os.getpid()}-{process.name}").rmdir()
    if cluster.target is not None:
        cluster.target.terminate()
        await asyncio.to_thread(_end, cluster.target)
    for proxy in proxies:
        await proxy.__aexit__(None, None, None)
    cluster.postgres.empty()
    cluster.postgres.stop()


def _end(popen: "subprocess.Popen[bytes]") -> None:
    try:
        popen.wait(timeout=20)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
