"""Where everything lies under the data directory.

pg/                 the cluster (0700, the account's)
run/                the Unix socket (0700, the account's), unless its path would be too long
secrets/            the passwords of the superuser and of the service (0700, ours)
binaries/           copies for an account that may not reach the installed ones
init-…/             a cluster being made; swept at the next start
postgres.log        and postgres.log.1, the one before
owner.lock          held by the process that owns the server
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from betimes.domain.errors import Conflict, Refused
from betimes.embedded.account import Account, account_for

# Linux allows 107 bytes for a socket's path, macOS 103; the name takes `/.s.PGSQL.65535`.
SOCKET_DIRECTORY_BYTES_MAX = 103 - len("/.s.PGSQL.65535.lock")
LOG_BYTES_MAX = 10 * 2**20
TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one data directory."""

    data: Path

    @property
    def cluster(self) -> Path:
        """PGDATA."""
        return self.data / "pg"

    @property
    def upgraded(self) -> Path:
        """An upgraded cluster on its way to becoming `pg/`."""
        return self.data / "pg.new"

    @property
    def password(self) -> Path:
        """The file with the superuser's password."""
        return self.data / "secrets" / "postgres.password"

    @property
    def service_password(self) -> Path:
        """The file with the password of the login that the service uses."""
        return self.data / "secrets" / "service.password"

    @property
    def binaries(self) -> Path:
        """Private copies of the wheels' binaries."""
        return self.data / "binaries"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.data / "postgres.log"

    @property
    def lock(self) -> Path:
        """Held by the owner."""
        return self.data / "owner.lock"

    def create(self) -> None:
        """Make the data directory; one that exists keeps its permissions.

        Raises:
            Refused: it is not ours.

        """
        try:
            make_passable(self.data)
            owner = self.data.stat().st_uid
        except OSError as error:
            raise Refused(
                f"The data directory {self.data} cannot be used: {error.strerror}.",
                code="data_not_usable",
            ) from error
        if owner != os.geteuid():
            # Root, too: writing into a directory that another user can rearrange is not safe.
            raise Refused(
                f"The data directory {self.data} belongs to uid {owner}, and this process runs "
                f"as uid {os.geteuid()}. Run it as the owner, or choose another directory.",
                code="data_not_ours",
            )

    def finish_upgrade(self) -> None:
        """Complete an exchange of clusters that was interrupted between its two renames."""
        if self.upgraded.exists() and not self.cluster.exists():
            self.upgraded.rename(self.cluster)
            sync_directory(self.data)

    def sweep(self) -> None:
        """Remove what an interrupted initialisation left behind."""
        for unfinished in self.data.glob("init-*"):
            shutil.rmtree(unfinished, ignore_errors=True)

    def found_major(self) -> int | None:
        """The major version of the cluster, or None when there is none yet.

        Raises:
            Conflict: the directory holds something that is no cluster.

        """
        try:
            return int((self.cluster / "PG_VERSION").read_text().partition(".")[0])
        except (FileNotFoundError, ValueError):
            if self.cluster.is_dir() and any(self.cluster.iterdir()):
                raise Conflict(
                    f"{self.cluster} is neither empty nor a PostgreSQL cluster; it was left as "
                    f"it is. Move it away, or choose another data directory.",
                    code="data_not_a_cluster",
                ) from None
            return None

    def ensure_password(self, factory: Callable[[], str]) -> bool:
        """Make the superuser's password when there is none; tell whether it is new."""
        return self._ensure_secret(self.password, factory)

    def ensure_service_password(self, factory: Callable[[], str]) -> str:
        """The password of the service's login, made when there is none."""
        self._ensure_secret(self.service_password, factory)
        return self.service_password.read_text()

    def _ensure_secret(self, place: Path, factory: Callable[[], str]) -> bool:
        if place.exists():
            return False
        place.parent.mkdir(mode=0o700, exist_ok=True)
        unfinished = place.with_suffix(".tmp")
        unfinished.unlink(missing_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(factory())
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(place)
        sync_directory(place.parent)
        return True

    def rotate_log(self) -> None:
        """Keep one old log, so that logs stay bounded."""
        if self.log_size() > LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))

    def log_size(self) -> int:
        """Bytes in the log; growth is a sign of life."""
        try:
            return self.log.stat().st_size
        except FileNotFoundError:
            return 0

    def log_tail(self, since: int = 0) -> str:
        """The last words of the server, none from before `since`."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(since, self.log_size() - TAIL_BYTES))
                return file.read().decode(errors="replace").strip()
        except FileNotFoundError:
            return ""


def socket_directory(data: Path, account: Account, runtime: Path | None) -> Path:
    """A private directory whose path is short enough for a Unix socket.

    Normally `run/` in the data directory; for a long path one in `runtime` or the temporary
    directory, named after a digest of the data directory.

    Raises:
        Refused: the place in the shared directory is taken by somebody else.

    """
    chosen = data / "run"
    if len(os.fsencode(chosen)) > SOCKET_DIRECTORY_BYTES_MAX:
        digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
        reachable = runtime is not None and account.first_closed(runtime) is None
        base = runtime if runtime and reachable else Path(tempfile.gettempdir())
        chosen = base / f"betimes-{digest}"
    chosen.mkdir(mode=0o700, exist_ok=True)
    found = chosen.lstat()
    ours = found.st_uid in {os.geteuid(), account.uid} and not found.st_mode & 0o077
    if not stat.S_ISDIR(found.st_mode) or not ours:
        raise Refused(
            f"{chosen}, the place for the socket of {data}, belongs to uid {found.st_uid} or is "
            f"open to others.",
            code="socket_place_taken",
        )
    account.own(chosen)
    return chosen


def make_passable(directory: Path) -> None:
    """Make the directory and its missing parents; what exists is not touched.

    As root the service account must get through to its own subdirectories, whatever the umask.
    """
    if directory.is_dir():
        return
    make_passable(directory.parent)
    directory.mkdir()
    directory.chmod(0o711 if os.geteuid() == 0 else 0o700)


def default_data(preferred: Path, *, for_root: Path = Path("/var/lib/betimes")) -> Path:
    """The preferred data directory, unless we are root and the service account cannot reach it.

    Root's home is closed on most machines, so root's data lies where services keep theirs.
    """
    preferred = preferred.expanduser()
    if os.geteuid() != 0:
        return preferred
    existing = next(path for path in (preferred, *preferred.parents) if path.is_dir())
    return for_root if account_for(preferred / "pg").first_closed(existing) else preferred


def sync_directory(directory: Path) -> None:
    """Make a rename in the directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
