"""An empty directory becomes a cluster, or stays empty.

initdb works in a directory of its own, which becomes `pg/` by one rename at the very end. A kill
at any moment leaves either no cluster or a whole one.
"""

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
        workshop = self._new_workshop()
        cluster = workshop / "account" / "pg"
        cluster.parent.mkdir(mode=0o700)
        self._account.own(cluster.parent)
        self._initdb(cluster, sync=sync)
        self._account.write(cluster / "pg_hba.conf", conf.HBA)
        self._run_sql(cluster, [_alter_password(password), f"CREATE DATABASE {DATABASE}"], workshop)
        cluster.rename(self._layout.cluster)
        sync_directory(self._layout.data)
        self._layout.sweep()

    def change_password(self, password: str) -> None:
        """Set a new password in an existing cluster that is not running."""
        workshop = self._new_workshop()
        self._run_sql(self._layout.cluster, [_alter_password(password)], workshop)
        self._layout.sweep()

    def _new_workshop(self) -> Path:
        """Ours, and only passed through by the account on the way to its own part."""
        workshop = Path(tempfile.mkdtemp(prefix="init-", dir=self._layout.data))
        workshop.chmod(0o711)
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
            self._run([*common, *builtin])
            return
        try:
            self._run([*common, "--locale=C.UTF-8"])
        except Unavailable:  # old C libraries do not know C.UTF-8; initdb has cleaned up
            self._run([*common, "--locale=C"])

    def _run_sql(self, cluster: Path, statements: list[str], workshop: Path) -> None:
        """Run statements in single-user mode: no socket, no network, no driver."""
        script = workshop / "statements.sql"
        script.touch(mode=0o600)
        script.write_text("".join(f"{statement}\n" for statement in statements))
        postgres = str(self._binaries.tool("postgres"))
        settings = ["-c", "exit_on_error=on", "-c", "log_min_error_statement=panic"]
        self._run([postgres, "--single", "-D", str(cluster), *settings, SUPERUSER], stdin=script)

    def _run(self, command: list[str], stdin: Path = Path("/dev/null")) -> None:
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
