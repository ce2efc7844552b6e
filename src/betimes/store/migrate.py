"""Numbered migrations, applied once each, under a lock, with a checksum.

A file is named `NNNN_expand_what.sql` or `NNNN_contract_what.sql`. An expanding migration leaves
the previous release working; a contracting one removes what no running release uses any more. Each
runs in one transaction, unless its first line is `-- transaction: no` (concurrent index builds):
then each statement, ended by a semicolon at the end of a line, runs alone.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import BadSetting, Bug, Conflict, Refused, Unavailable
from betimes.store.faults import translated
from betimes.store.pool import Address, Connection, Session, close, connect
from betimes.store.queries import load

SQL = load("migrations")
LOCK_KEY = 0x6265_7469_6D65_7301  # "betimes" and a one
LOCK_POLL_SECONDS = 0.2
LOCK_PATIENCE_SECONDS = 60.0
# A migration waits for no lock longer than this: whoever queues behind it would wait as well.
LOCK_TIMEOUT_MS = 2_000

_NAME = re.compile(r"(\d{4})_(expand|contract)_\w+\.sql")
_NO_TRANSACTION = "-- transaction: no"
_COMMENT = re.compile(r"--.*$", re.MULTILINE)
_STATEMENT_END = re.compile(r";\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from one schema to the next."""

    number: int
    name: str
    kind: str
    text: str

    @property
    def checksum(self) -> str:
        """Of the text as it is; a changed file is a changed history."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Whether it can be undone as a whole."""
        return not self.text.startswith(_NO_TRANSACTION)

    @property
    def statements(self) -> list[str]:
        """What is sent at once; several statements sent at once would be a transaction again."""
        if self.in_transaction:
            return [self.text]
        parts = _STATEMENT_END.split(_COMMENT.sub("", self.text))
        return [part.strip() for part in parts if part.strip()]


@dataclass(frozen=True, slots=True)
class Applied:
    """A step the database remembers."""

    number: int
    name: str
    kind: str
    checksum: str


def known() -> tuple[Migration, ...]:
    """Every migration of this release, in order."""
    folder = files("betimes.store") / "migrations"
    return in_order({file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()})


def in_order(texts: Mapping[str, str]) -> tuple[Migration, ...]:
    """The migrations in files of these names; refuses doubles and names without a kind.

    Numbers may leave gaps: changes that are made side by side take theirs from blocks of their own.
    """
    found: list[Migration] = []
    for name in sorted(texts):
        match = _NAME.fullmatch(name)
        if not match:
            raise Bug(f"expected NNNN_expand_what.sql or NNNN_contract_what.sql, got {name}")
        step = Migration(int(match[1]), name.removesuffix(".sql"), match[2], texts[name])
        found.append(step)
    numbers = [step.number for step in found]
    if len(set(numbers)) < len(numbers) or 0 in numbers:
        raise Bug("expected the numbers of the migrations to begin at 1 and to rise, got a double")
    return tuple(found)


def pending_of(steps: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """What is still to do; refuses a history that is not ours."""
    by_number = {step.number: step for step in steps}
    for past in applied:
        ours = by_number.get(past.number)
        if ours and ours.checksum != past.checksum:
            raise Conflict(
                f"migration {past.name} was changed after it was applied to this database",
                code="migration_changed",
            )
    done = {past.number for past in applied}
    pending = tuple(step for step in steps if step.number not in done)
    if pending and any(pending[0].number < number for number in done & by_number.keys()):
        raise Conflict(
            f"migration {pending[0].name} was never applied to this database, but later ones were",
            code="migration_missing",
        )
    return pending


def complaints_of(steps: Sequence[Migration], applied: Sequence[Applied]) -> list[str]:
    """Why this release must not serve on this database; empty means it may.

    A database that is ahead is fine as long as it was only expanded: that is a rolling upgrade.
    """
    complaints = []
    if pending := pending_of(steps, applied):
        complaints.append(
            f"the database lacks {len(pending)} migration(s), first {pending[0].name}; "
            "run `betimes server migrate`"
        )
    ours = {step.number for step in steps}
    complaints += [
        f"the database is newer: {past.name} removed what this release needs; upgrade betimes"
        for past in applied
        if past.number not in ours and past.kind == "contract"
    ]
    return complaints


async def migrate(
    dsn: str,
    settings: DatabaseSettings,
    *,
    shards: int,
    clock: Clock,
    progress: Callable[[str], None] = lambda _: None,
    steps: Sequence[Migration] | None = None,
) -> list[str]:
    """Bring the database to this release; returns the names of what was applied.

    Needs a direct connection: the lock belongs to the session.
    """
    steps = known() if steps is None else steps
    if _address(dsn, settings).pooled:
        raise BadSetting("migrations need a direct address of the database, got one with a pooler")
    async with _session(dsn, settings) as connection:
        await _lock(connection, clock)
        rights = await _rights(connection)
        if not rights["owns"]:
            raise Refused(
                f"migrations need the owner of the schema betimes, or of the database where there"
                f" is none yet; got {rights['login']}, which may not change it"
            )
        await connection.execute(SQL["create_schema"].text)
        await connection.execute(SQL["create_migrations"].text)
        pending = pending_of(steps, await _applied(connection))
        for step in pending:
            progress(step.name)
            await _apply(connection, step)
        if steps:
            await connection.execute(SQL["initialise_cluster"].text, shards)
            await connection.execute(SQL["initialise_shards"].text)
        return [step.name for step in pending]


async def complaints_of_database(connection: Connection) -> list[str]:
    """The same for a database that is already served."""
    rows = await connection.fetch(SQL["list_migrations"].text)
    try:
        return complaints_of(_steps(), [_applied_of(row) for row in rows])
    except Conflict as conflict:
        return [conflict.sentence]


_steps = cache(known)
"""Files do not change under a process that serves."""


async def complaints(dsn: str, settings: DatabaseSettings) -> list[str]:
    """Why this release must not serve on the database as it is now."""
    async with _session(dsn, settings) as connection, connection.transaction():
        rights = await _rights(connection)
        if rights["serves"]:
            await connection.execute(SQL["act_as_service"].text)
        elif not rights["reads"]:
            return [_needs_grant(rights["login"])]
        return complaints_of(known(), await _applied(connection))


def _address(dsn: str, settings: DatabaseSettings) -> Address:
    # The switch in the settings is about the address in the settings; ours may be a direct one.
    return Address.of(dsn, pgbouncer=settings.pgbouncer and dsn == settings.dsn)


@asynccontextmanager
async def _session(dsn: str, settings: DatabaseSettings) -> AsyncIterator[Session]:
    with translated():
        connection = await connect(_address(dsn, settings), settings)
        try:
            yield connection
        finally:
            await close(connection)


def _needs_grant(login: str) -> str:
    return (
        f"expected a login that may act as the service, got {login}, which may not; as the owner"
        f' of the database say GRANT betimes_api, betimes_system TO "{login}"'
    )


async def _rights(connection: Session) -> Mapping[str, Any]:
    (row,) = await connection.fetch(SQL["read_rights"].text)
    return dict(row)


async def _lock(connection: Session, clock: Clock) -> None:
    deadline = clock.monotonic() + LOCK_PATIENCE_SECONDS
    while not await connection.fetchval(SQL["try_lock"].text, LOCK_KEY):
        if clock.monotonic() > deadline:
            raise Unavailable(
                f"another process is migrating this database, waited {LOCK_PATIENCE_SECONDS:.0f} s"
            )
        await clock.sleep(LOCK_POLL_SECONDS)


async def _applied(connection: Session) -> list[Applied]:
    if not await connection.fetchval(SQL["has_migrations"].text):
        return []
    rows = await connection.fetch(SQL["list_migrations"].text)
    return [_applied_of(row) for row in rows]


def _applied_of(row: Any) -> Applied:
    return Applied(row["number"], row["name"], row["kind"], row["checksum"])


async def _apply(connection: Session, step: Migration) -> None:
    record = (step.number, step.name, step.kind, step.checksum)
    if not step.in_transaction:
        # Must be written so that it can be repeated: a crash may leave it half done.
        for statement in step.statements:
            await connection.execute(statement)
        await connection.execute(SQL["record_migration"].text, *record)
        return
    async with connection.transaction():
        await connection.execute(SQL["bound_locks"].text, str(LOCK_TIMEOUT_MS))
        await connection.execute(step.text)
        await connection.execute(SQL["record_migration"].text, *record)
