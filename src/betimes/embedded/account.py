"""Who runs PostgreSQL.

PostgreSQL refuses to run as root, so as root a service account runs it. That account gets our own
subdirectories and nothing else: no permission of any other directory is ever changed.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from betimes.domain.errors import Refused, Unavailable

SERVICE_NAME = "betimes"
EXISTING_NAMES = ("postgres", "nobody")
# Prints the first directory that the account asking may not enter.
FIRST_CLOSED = 'for each; do [ -x "$each" ] || { echo "$each"; exit 1; }; done'

REPLACE = 'umask 077; cat > "$1.tmp" && mv -f "$1.tmp" "$1"'


@dataclass(frozen=True, slots=True)
class Account:
    """A Unix account; `switch` tells whether we must change to it or already are it."""

    name: str
    uid: int
    gid: int
    switch: bool

    def can_run(self, *command: str) -> bool:
        """Whether the account may execute this command and it succeeds."""
        try:
            return self._run(*command).returncode == 0
        except OSError:
            return False

    def first_closed(self, directory: Path) -> Path | None:
        """The uppermost of the directory and its parents that the account may not enter."""
        way = [str(path) for path in (*reversed(directory.parents), directory)]
        answer = self._run("/bin/sh", "-c", FIRST_CLOSED, "sh", *way)
        return Path(answer.stdout.strip()) if answer.returncode else None

    def own(self, path: Path) -> None:
        """Give one of our own files or directories to the account."""
        if self.switch:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def write(self, path: Path, text: str) -> None:
        """Replace a file of the account's, as the account.

        As root we must not follow names in a directory that another account can rearrange.

        Raises:
            Unavailable: the account could not write it.

        """
        answer = self._run("/bin/sh", "-c", REPLACE, "sh", str(path), said=text)
        if answer.returncode:
            raise Unavailable(f"{self.name} could not write {path}: {answer.stderr.strip()}")

    def _run(self, *command: str, said: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 -- our own command, no shell expansion of arguments
            command,
            input=said,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            cwd="/",
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )


def account_for(cluster: Path) -> Account:
    """Ourselves, or as root the owner of the existing cluster, or the service account."""
    if os.geteuid() != 0:
        return Account(_name_of(os.geteuid()), os.geteuid(), os.getegid(), switch=False)
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return Account(_name_of(owner.st_uid), owner.st_uid, owner.st_gid, switch=True)
    return _service_account()


def require_way(account: Account, directory: Path) -> None:
    """Refuse in a sentence when the account cannot reach the directory.

    Raises:
        Refused: a parent is closed to the account; we change no permissions to help it.

    """
    if account.switch and (closed := account.first_closed(directory)):
        raise Refused(
            f"PostgreSQL does not run as root, so it runs as {account.name}, and {account.name} "
            f"may not enter {closed}, on the way to {directory}. Choose a data directory that "
            f"every user may reach, or run betimes as an ordinary user.",
            code="data_not_reachable",
        )


def _service_account() -> Account:
    if account := _named(SERVICE_NAME):
        return account
    if useradd := shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin"):
        # Two processes may race here; whoever loses finds the account made by the other.
        subprocess.run(  # noqa: S603 -- a fixed command
            [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVICE_NAME],
            capture_output=True,
            check=False,
            timeout=30,
        )
    for name in (SERVICE_NAME, *EXISTING_NAMES):
        if account := _named(name):
            return account
    raise Refused(
        f"PostgreSQL does not run as root, and there is no account to run it: {SERVICE_NAME} "
        f"could not be created and {' or '.join(EXISTING_NAMES)} does not exist.",
        code="no_service_account",
    )


def _named(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(name, entry.pw_uid, entry.pw_gid, switch=True)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # containers often run under a number without a name
        return str(uid)
