"""An empty directory becomes a cluster, or stays empty.

initdb works in a directory of its own, which becomes `pg/` by one rename at the very end. A kill
at any moment leaves either no cluster or a whole one.
"""

import os
import tempfile
from pathlib import Path

from betimes.domain.errors import Unavailable
from betimes.embedded import conf
from betimes.embedded.account import Account
from betimes.embedded.binaries import Binaries
from betimes.embedded.launch import Kept
from betimes.embedded.layout import Layout, sync_directory

SUPERUSER = "postgres"
DATABASE = "betimes"
BUILTIN_LOCALE_SINCE = 17
STOP_PATIENCE_SECONDS = 10.0


class Initialiser:
    """Makes the cluster and sets its password, without ever opening a connection."""

    def __init__(self, *, layout: Layout, binaries: Binaries, account: Account) -> None:
        self._layout = layout
        self._binaries = binaries
        self._account = account

    def create(self, *, password: str, sync: bool) -> None:
        """Make `pg/` with a superuser, a database and our access rules."""
        workshop = self.new_workshop()
        cluster = workshop / "account" / "pg"
        self.make(cluster, password=password, sync=sync, databases=(DATABASE,))
        cluster.rename(self._layout.cluster)
        sync_directory(self._layout.data)
        self._layout.sweep()

    def make(
        self, cluster: Path, *, password: str, sync: bool, databases: tuple[str, ...] = ()
    ) -> None:
        """Make a cluster inside a workshop."""
        self._initdb(cluster, sync=sync)
        self._account.write(cluster / "pg_hba.conf", conf.HBA)
        statements = [f"CREATE DATABASE {database}" for database in databases]
        workshop = cluster.parent.parent
        self._run_sql(cluster, [_alter_password(password), *statements], workshop)

    def change_password(self, password: str) -> None:
        """Set a new password in an existing cluster that is not running."""
        workshop = self.new_workshop()
        self._run_sql(self._layout.cluster, [_alter_password(password)], workshop)
        self._layout.sweep()

    def new_workshop(self) -> Path:
        """A directory of ours, swept at the next start; its `account` belongs to the account."""
        workshop = Path(tempfile.mkdtemp(prefix="init-", dir=self._layout.data))
        workshop.chmod(0o711)
        (workshop / "account").mkdir(mode=0o700)
        self._account.own(workshop / "account")
        return workshop

    def _initdb(self, cluster: Path, *, sync: bool) -> None:
        common = [
            str(self._binaries.tool("initdb")),
            f"--pgdata={cluster}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            "--data-checksums",
            "--auth=reject",  # until our own rules are written, nobody gets in
            "--no-instructions",
            *([] if sync else ["--no-sync"]),
        ]
        if self._binaries.major >= BUILTIN_LOCALE_SINCE:
            # The same order on every machine, whatever its C library.
            builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
            self.run([*common, *builtin])
            return
        try:
            self.run([*common, "--locale=C.UTF-8"])
        except Unavailable:  # old C libraries do not know C.UTF-8; initdb has cleaned up
            self.run([*common, "--locale=C"])

    def _run_sql(self, cluster: Path, statements: list[str], workshop: Path) -> None:
        """Run statements in single-user mode: no socket, no network, no driver."""
        script = workshop / "statements.sql"
        script.touch(mode=0o600)
        script.write_text("".join(f"{statement}\n" for statement in statements))
        postgres = str(self._binaries.tool("postgres"))
        settings = ["-c", "exit_on_error=on", "-c", "log_min_error_statement=panic"]
        self.run([postgres, "--single", "-D", str(cluster), *settings, SUPERUSER], stdin=script)

    def run(self, command: list[str], stdin: Path = Path(os.devnull)) -> None:
        """Run a command as the account, to its end or ours; its words go to the log.

        Raises:
            Unavailable: it failed; the sentence ends with what it said.

        """
        before = self._layout.log_size()
        running = Kept(
            command,
            account=self._account,
            log=self._layout.log,
            patience=STOP_PATIENCE_SECONDS,
            stdin=stdin,
        )
        try:
            status = running.wait()
        finally:
            running.let_go()
        if status:
            raise Unavailable(
                f"{Path(command[0]).name} failed with status {status}: "
                + self._layout.log_tail(before)
            )


def _alter_password(password: str) -> str:
    literal = password.replace("'", "''")
    return f"ALTER ROLE {SUPERUSER} PASSWORD '{literal}'"
