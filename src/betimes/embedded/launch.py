"""Start a command under a keeper, and hold its lifeline."""

import os
import subprocess
import sys
from pathlib import Path

from betimes.domain.errors import Unavailable
from betimes.embedded import keeper
from betimes.embedded.account import Account

# Nothing of the caller's environment: PGDATA, PGPORT, LC_ALL and friends would change behaviour.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


class Kept:
    """A running command that ends when this process ends, whichever way that happens.

    The write end of the lifeline is close-on-exec. A child made by fork without exec would hold
    it too and keep the command alive; nothing in this house forks that way.
    """

    def __init__(
        self,
        command: list[str],
        *,
        account: Account,
        log: Path,
        patience: float,
        stdin: Path = Path(os.devnull),
    ) -> None:
        identity = [str(account.uid), str(account.gid), str(patience), str(stdin)]
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- our own program and arguments
                [sys.executable, "-I", "-S", keeper.__file__, *identity, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(output)
        self.pid = self._hear_pid()

    def _hear_pid(self) -> int:
        assert self._process.stdout is not None  # noqa: S101 -- asked for a pipe above
        with self._process.stdout as words:
            said = words.readline()
        if not said:
            self.let_go()
            raise Unavailable(f"The keeper of PostgreSQL did not start ({self.wait()}).")
        return int(said)

    def let_go(self) -> None:
        """Cut the lifeline: the keeper stops the command now."""
        assert self._process.stdin is not None  # noqa: S101 -- asked for a pipe above
        self._process.stdin.close()

    def ended(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Block until it has ended."""
        return self._process.wait()
