"""Start, watch and stop the embedded PostgreSQL.

What is authoritative: the lock says who owns the server, the kernel says who is alive, the
server's own answer says whether it accepts connections. Files with pids are rumours.

    start ─ lock free ──▶ see off an orphan ▶ prepare ▶ launch ▶ wait until it accepts ▶ owner
          └ lock taken ─▶ wait until the owner's server accepts ▶ attached
                          (when the owner dies meanwhile, its lock is free and ours to take)

What may go wrong, and why it is safe: a killed owner frees the lock at once while its server may
still be closing; the next owner waits for it, then asks it to stop, before it starts its own.
PostgreSQL's own check of its shared memory stands behind all of this and is never disarmed.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

from betimes.domain.clock import Clock
from betimes.domain.errors import Conflict, Refused, Unavailable
from betimes.embedded import conf, process
from betimes.embedded.binaries import Binaries
from betimes.embedded.initialise import DATABASE, SUPERUSER
from betimes.embedded.launch import Kept
from betimes.embedded.layout import Layout
from betimes.embedded.lock import OwnerLock, holder_of
from betimes.embedded.patience import Patience
from betimes.embedded.prepare import Prepared, Wishes, prepare
from betimes.embedded.protocol import Answer, probe

T = TypeVar("T")
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
DEFAULT_PORT = 5432
POLL_SECONDS = 0.02
WATCH_SECONDS = 0.2
ORPHAN_GRACE_SECONDS = 2.0


class EmbeddedPostgres:
    """One PostgreSQL server in one data directory, owned by at most one process.

    `patience` is how many seconds of silence are borne: a start that shows progress is waited
    for without end. It is also the time a fast shutdown gets before an immediate one.
    """

    def __init__(
        self,
        *,
        data: Path,
        clock: Clock,
        password_factory: Callable[[], str],
        binaries: Binaries | None = None,
        listen: str | None = None,
        port: int | None = None,
        settings: Mapping[str, str] = NO_SETTINGS,
        unsafe_no_fsync: bool = False,
        runtime: Path | None = None,
        patience: float = 60.0,
    ) -> None:
        self._layout = Layout(Path(os.path.realpath(data)))
        self._clock = clock
        self._wishes = Wishes(
            password_factory=password_factory,
            binaries=binaries,
            listen=conf.loopback(listen) if listen else "",
            port=port or DEFAULT_PORT,
            settings=conf.checked(settings),
            unsafe_no_fsync=unsafe_no_fsync,
            runtime=runtime,
        )
        self._patience = patience
        self._lock: OwnerLock | None = None
        self._kept: Kept | None = None
        self._words: process.PidFile | None = None

    @property
    def log_path(self) -> Path:
        """What the server says."""
        return self._layout.log

    @property
    def pid(self) -> int | None:
        """The postmaster's pid, ours or the one we attached to; None when not started."""
        return self._words.pid if self._words else None

    @property
    def attached(self) -> bool:
        """True when another living process owns the server and we only use it."""
        return self._words is not None and self._lock is None

    def dsn(self, database: str = DATABASE, *, tcp: bool = False) -> str:
        """The superuser's address of the running server, over the Unix socket unless asked.

        Raises:
            Unavailable: the server was not started.
            Refused: TCP was wanted here but not when the server was made.

        """
        return self._address(SUPERUSER, self._layout.password.read_text(), database, tcp=tcp)

    def service_dsn(self, login: str, database: str = DATABASE) -> str:
        """The address of the running server for a login that is no superuser.

        Whoever owns the database makes the login, with `service_password`.
        """
        return self._address(login, self.service_password(), database, tcp=False)

    def service_password(self) -> str:
        """The password of that login, made the first time it is asked for."""
        return self._layout.ensure_service_password(self._wishes.password_factory)

    def _address(self, login: str, password: str, database: str, *, tcp: bool) -> str:
        if self._words is None or self._words.socket_directory is None:
            raise Unavailable("The embedded PostgreSQL is not started.")
        user = f"{login}:{quote(password, safe='')}"
        if not tcp:
            host = quote(str(self._words.socket_directory), safe="/")
            return f"postgresql://{user}@/{database}?host={host}&port={self._words.port}"
        if not self._wishes.listen:
            raise Refused("The embedded PostgreSQL was not asked to listen on TCP.")
        host = self._wishes.listen.partition(",")[0].strip()
        host = f"[{host}]" if ":" in host else host
        return f"postgresql://{user}@{host}:{self._words.port}/{database}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Return when the server accepts connections, started by us or by another process.

        Raises:
            Refused: something only the caller can change stands in the way.
            Unavailable: the server ended or fell silent; the sentence ends with its last words.

        """
        if self._alive():
            return
        await self.stop()
        self._layout.create()
        waited = self._new_patience()
        while True:
            self._lock = OwnerLock.take(self._layout.lock)
            if self._lock:
                await self._start_as_owner()
                return
            if await self._attach():
                return
            if waited.exhausted():
                raise Unavailable(
                    f"{holder_of(self._layout.lock).capitalize()} owns {self._layout.data}, but "
                    f"its PostgreSQL does not answer. {self._layout.log_tail()}"
                )
            await self._clock.sleep(POLL_SECONDS)

    async def stop(self) -> None:
        """Stop what we own, cleanly; merely forget what we attached to. Harmless when stopped."""
        kept, self._kept, self._words = self._kept, None, None
        try:
            if kept:
                kept.let_go()
                while kept.ended() is None:
                    await self._clock.sleep(POLL_SECONDS)
        finally:
            if self._lock:
                self._lock.release()
                self._lock = None

    async def watch(self) -> str:
        """Return when the server is gone, with a sentence for the log; `start` brings it back.

        Also returns after `stop`. A crash of one backend is PostgreSQL's own affair, not a going.
        """
        while self._alive():
            await self._clock.sleep(WATCH_SECONDS)
        return f"The embedded PostgreSQL is gone. Its last words: {self._layout.log_tail()}"

    def _alive(self) -> bool:
        if self._words is None:
            return False
        if self._kept:
            return self._kept.ended() is None
        return process.is_postmaster(self._words.pid, self._layout.cluster)

    async def _start_as_owner(self) -> None:
        try:
            await self._see_off_orphans()
            prepared = await to_the_end(lambda: prepare(self._layout, self._wishes))
            await self._launch(prepared)
        except BaseException:
            await self.stop()
            raise

    async def _see_off_orphans(self) -> None:
        """Wait for, then stop, a server whose owner died without it.

        On Linux it is already stopping by itself. Backends that have lost their postmaster end
        by themselves too, except one deep in a long statement, which is told to.
        """
        cluster = self._layout.cluster
        grace = self._pause(ORPHAN_GRACE_SECONDS)
        fast, last = self._pause(self._patience), self._pause(3 * self._patience)
        while (words := process.postmaster_of(cluster)) or process.leftovers_of(cluster):
            if grace.exhausted():
                number = signal.SIGQUIT if fast.exhausted() else signal.SIGINT
                if words:
                    process.signal_postmaster(words.pid, cluster, number)
                else:
                    process.quit_leftovers(cluster)
                grace = self._pause(ORPHAN_GRACE_SECONDS)
            if last.exhausted():
                raise Unavailable(f"A PostgreSQL whose owner is gone does not leave {cluster}.")
            await self._clock.sleep(POLL_SECONDS)

    async def _launch(self, prepared: Prepared) -> None:
        before = self._layout.log_size()
        kept = await to_the_end(lambda: self._hold(prepared))
        waited = self._new_patience()
        while not await self._accepts(kept.pid):
            status = kept.ended()
            if status is not None or waited.exhausted():
                why = "fell silent" if status is None else f"ended with status {status}"
                raise Unavailable(
                    f"PostgreSQL {why} while starting in {self._layout.cluster}. Its last words: "
                    + self._layout.log_tail(before)
                )
            await self._clock.sleep(POLL_SECONDS)

    async def _accepts(self, pid: int) -> bool:
        """Whether the server with this pid accepts connections; remember its address when so.

        It is asked only once it claims to be ready: each question before that is a FATAL line in
        its log, which would pass for progress.
        """
        words = process.PidFile.read(self._layout.cluster)
        if words is None or words.pid != pid or not words.ready:
            return False
        if words.port is None or words.socket_directory is None:
            return False
        answer = await probe(words.socket_directory, words.port, user=SUPERUSER)
        if answer is not Answer.ACCEPTING:
            return False
        self._words = words
        return True

    def _hold(self, prepared: Prepared) -> Kept:
        """Launch in a thread; what is launched is ours to stop even when the start is cancelled."""
        self._kept = Kept(
            prepared.command,
            account=prepared.account,
            log=self._layout.log,
            patience=self._patience,
        )
        return self._kept

    async def _attach(self) -> bool:
        """Use the server of the process that holds the lock, once it accepts connections."""
        words = process.postmaster_of(self._layout.cluster)
        if words is None or not words.ready:
            return False
        if self._wishes.listen and (not words.listen or words.port != self._wishes.port):
            heard = f"TCP port {words.port}" if words.listen else "its Unix socket only"
            raise Conflict(
                f"expected PostgreSQL on TCP port {self._wishes.port}, but it already runs in "
                f"{self._layout.data}, owned by {holder_of(self._layout.lock)}, on {heard}."
            )
        return await self._accepts(words.pid)

    def _new_patience(self) -> Patience:
        """For a server that starts: its words and its work are both signs of life."""
        return Patience(
            clock=self._clock,
            seconds=self._patience,
            words=self._layout.log_size,
            work=lambda: process.work_of(self._layout.cluster),
        )

    def _pause(self, seconds: float) -> Patience:
        """Runs out by the clock alone."""
        return Patience(clock=self._clock, seconds=seconds, words=lambda: 0)


async def to_the_end(work: Callable[[], T]) -> T:
    """Run blocking work in a thread; when cancelled, wait for it before giving up the lock."""
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
