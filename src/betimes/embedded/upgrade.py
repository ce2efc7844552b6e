"""Carry a cluster over to a newer major version: `python -m betimes.embedded.upgrade DATA`.

pg_upgrade copies the old cluster into a new one, in a workshop that the account may write. The
old cluster is only read, and kept as `pg.old-N`. The exchange is two renames, and a kill between
them is made good by the next start; see `Layout.finish_upgrade`.
"""

import os
import shutil
import sys
from pathlib import Path

from betimes.domain.errors import Conflict, SchedulerError
from betimes.embedded import process
from betimes.embedded.account import account_for, require_way
from betimes.embedded.binaries import Binaries, executable_for, find_binaries
from betimes.embedded.initialise import SUPERUSER, Initialiser
from betimes.embedded.layout import Layout, socket_directory, sync_directory
from betimes.embedded.lock import OwnerLock, holder_of

# pg_upgrade writes into its working directory, and connects with the password of this file.
IN_WORKSHOP = 'cd "$1" && export PGPASSFILE="$1/pgpass" && shift && exec "$@"'


def upgrade(data: Path, *, new: Binaries | None = None, old: Binaries | None = None) -> Path:
    """Upgrade the stopped cluster of a data directory; the place of the kept old one.

    Raises:
        Refused: it runs, there is none, it needs no upgrade, or binaries are missing.
        Unavailable: pg_upgrade failed; nothing has changed, and its words are in the sentence.

    """
    layout = Layout(Path(os.path.realpath(data)))
    layout.create()
    lock = OwnerLock.take(layout.lock)
    if lock is None:
        raise Conflict(f"{layout.data} is in use by {holder_of(layout.lock)}; stop it first.")
    try:
        if process.postmaster_of(layout.cluster) or process.leftovers_of(layout.cluster):
            raise Conflict(f"A PostgreSQL still runs in {layout.cluster}; stop it first.")
        layout.finish_upgrade()
        new = new or find_binaries()
        major = layout.found_major()
        if major is None or major >= new.major:
            found = "no cluster" if major is None else f"PostgreSQL {major}"
            raise Conflict(
                f"expected data older than PostgreSQL {new.major} in {layout.cluster}, got {found}."
            )
        return _carry_over(layout, old or find_binaries(major=major), new)
    finally:
        lock.release()


def _carry_over(layout: Layout, old: Binaries, new: Binaries) -> Path:
    kept = layout.data / f"pg.old-{old.major}"
    if kept.exists():
        raise Conflict(f"{kept}, kept by an earlier upgrade, is in the way; move it elsewhere.")
    account = account_for(layout.cluster)
    require_way(account, layout.data)
    old = executable_for(old, account, layout.binaries)
    new = executable_for(new, account, layout.binaries)
    layout.sweep()
    initialiser = Initialiser(layout=layout, binaries=new, account=account)
    workshop = initialiser.new_workshop() / "account"
    password = layout.password.read_text()
    initialiser.make(workshop / "pg", password=password, sync=True)
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    account.write(workshop / "pgpass", f"*:*:*:{SUPERUSER}:{escaped}\n")
    options = {
        "old-bindir": old.directory,
        "new-bindir": new.directory,
        "old-datadir": layout.cluster,
        "new-datadir": workshop / "pg",
        "socketdir": socket_directory(layout.data, account, None),
        "username": SUPERUSER,
    }
    command = [
        str(new.tool("pg_upgrade")),
        *(f"--{name}={value}" for name, value in options.items()),
    ]
    initialiser.run(["/bin/sh", "-c", IN_WORKSHOP, "sh", str(workshop), *command])
    _exchange(layout, workshop / "pg", kept)
    return kept


def _exchange(layout: Layout, upgraded: Path, kept: Path) -> None:
    """Put the new cluster where the old one is; at no moment is there none to be found."""
    shutil.rmtree(layout.upgraded, ignore_errors=True)  # of an attempt killed before the exchange
    upgraded.rename(layout.upgraded)
    sync_directory(layout.data)
    layout.cluster.rename(kept)
    layout.finish_upgrade()
    layout.sweep()


def main() -> int:
    """Upgrade the data directory named on the command line."""
    if len(sys.argv) != 2:  # noqa: PLR2004 -- the program and its one argument
        sys.stderr.write("usage: python -m betimes.embedded.upgrade DATA\n")
        return 2
    try:
        kept = upgrade(Path(sys.argv[1]))
    except SchedulerError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Upgraded. The old data is kept in {kept}; remove it when all is well.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
