"""Connections of other libraries, told apart by the names of their types.

Nothing is imported that is not there: whoever hands in a connection of a library has it. Each door
runs one statement on the caller's own connection, in the caller's own transaction, and refuses a
connection that would commit by itself.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from betimes.domain.errors import Invalid

Row = Sequence[Any] | None
Statement = Callable[[tuple[str, ...]], str]
"""A statement, given the marks that stand for its parameters."""

FORMAT = "%s"
IDLE = 0
"""The state of a psycopg connection on which no transaction is open."""


@dataclass(frozen=True, slots=True)
class Door:
    """One connection: how to run a statement on it; one of the two ways is missing."""

    run: Callable[[Statement, Sequence[Any]], Row] | None = None
    arun: Callable[[Statement, Sequence[Any]], Any] | None = None


def door_of(connection: Any) -> Door:
    """The door of a connection, or of a Django alias.

    Raises:
        Invalid: it is of no library we know.

    """
    if isinstance(connection, str):
        return _django(import_module("django.db").connections[connection])
    for kind in type(connection).__mro__:
        make = DOORS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
        if make is not None:
            return make(connection)
    raise Invalid(
        "expected a connection of psycopg, asyncpg, SQLAlchemy, Django or sqlite3, got "
        f"{type(connection).__module__}.{type(connection).__qualname__}"
    )


def _refuse_autocommit() -> None:
    raise Invalid(
        "expected a connection inside a transaction, got one that commits every statement by itself"
    )


def _fetched(cursor: Any) -> Row:
    row: Row = cursor.fetchone() if cursor.description is not None else None
    return row


def _psycopg(connection: Any) -> Door:
    connection = getattr(connection, "connection", connection)  # a cursor stands for its own
    rows = import_module("psycopg.rows")

    def run(statement: Statement, given: Sequence[Any]) -> Row:
        if connection.autocommit and connection.info.transaction_status == IDLE:
            _refuse_autocommit()
        # The rows of the caller's connection may be dictionaries or anything else.
        with connection.cursor(row_factory=rows.tuple_row) as cursor:
            cursor.execute(statement((FORMAT,) * len(given)), given)
            return _fetched(cursor)

    return Door(run=run)


def _async_psycopg(connection: Any) -> Door:
    connection = getattr(connection, "connection", connection)
    rows = import_module("psycopg.rows")

    async def run(statement: Statement, given: Sequence[Any]) -> Row:
        if connection.autocommit and connection.info.transaction_status == IDLE:
            _refuse_autocommit()
        opened: AbstractAsyncContextManager[Any] = connection.cursor(row_factory=rows.tuple_row)
        async with opened as cursor:
            await cursor.execute(statement((FORMAT,) * len(given)), given)
            row: Row = await cursor.fetchone() if cursor.description is not None else None
            return row

    return Door(arun=run)


def _asyncpg(connection: Any) -> Door:
    async def run(statement: Statement, given: Sequence[Any]) -> Row:
        if not connection.is_in_transaction():
            _refuse_autocommit()
        marks = tuple(f"${place}" for place in range(1, len(given) + 1))
        row = await connection.fetchrow(statement(marks), *given)
        return None if row is None else tuple(row.values())

    return Door(arun=run)


def _named(statement: Statement, given: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    names = [f"given_{place}" for place in range(len(given))]
    text = import_module("sqlalchemy").text(statement(tuple(f":{name}" for name in names)))
    return text, dict(zip(names, given, strict=True))


def _check_isolation(connection: Any) -> None:
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
        _refuse_autocommit()


def _sqlalchemy(connection: Any) -> Door:
    def run(statement: Statement, given: Sequence[Any]) -> Row:
        _check_isolation(connection)
        found = connection.execute(*_named(statement, given))
        return tuple(found.one()) if found.returns_rows else None

    return Door(run=run)


def _sqlalchemy_session(session: Any) -> Door:
    # What was added gets its keys, so that `tx(session).enqueue(task, order.id)` can say them.
    session.flush()

    def run(statement: Statement, given: Sequence[Any]) -> Row:
        run_there = _sqlalchemy(session.connection()).run
        return run_there(statement, given) if run_there else None

    return Door(run=run)


def _async_sqlalchemy(connection: Any) -> Door:
    async def run(statement: Statement, given: Sequence[Any]) -> Row:
        _check_isolation(connection.sync_connection)
        found = await connection.execute(*_named(statement, given))
        return tuple(found.one()) if found.returns_rows else None

    return Door(arun=run)


def _async_sqlalchemy_session(session: Any) -> Door:
    async def run(statement: Statement, given: Sequence[Any]) -> Row:
        await session.flush()
        run_there = _async_sqlalchemy(await session.connection()).arun
        return await run_there(statement, given) if run_there else None

    return Door(arun=run)


def _django(connection: Any) -> Door:
    def run(statement: Statement, given: Sequence[Any]) -> Row:
        if not connection.in_atomic_block and connection.get_autocommit():
            _refuse_autocommit()
        opened: AbstractContextManager[Any] = connection.cursor()
        with opened as cursor:
            cursor.execute(statement((FORMAT,) * len(given)), given)
            return _fetched(cursor)

    return Door(run=run)


def _psycopg2(connection: Any) -> Door:
    def run(statement: Statement, given: Sequence[Any]) -> Row:
        if connection.autocommit and connection.info.transaction_status == IDLE:
            _refuse_autocommit()
        with connection.cursor() as cursor:
            cursor.execute(statement((FORMAT,) * len(given)), given)
            return _fetched(cursor)

    return Door(run=run)


def _sqlite(connection: Any) -> Door:
    connection = getattr(connection, "connection", connection)

    def run(statement: Statement, given: Sequence[Any]) -> Row:
        if connection.isolation_level is None and not connection.in_transaction:
            _refuse_autocommit()
        return _fetched(connection.execute(statement(("?",) * len(given)), given))

    return Door(run=run)


DOORS: dict[str, Callable[[Any], Door]] = {
    "psycopg.Connection": _psycopg,
    "psycopg.Cursor": _psycopg,
    "psycopg.AsyncConnection": _async_psycopg,
    "psycopg.AsyncCursor": _async_psycopg,
    "psycopg2.connection": _psycopg2,
    "asyncpg.Connection": _asyncpg,
    "asyncpg.PoolConnectionProxy": _asyncpg,
    "sqlalchemy.Connection": _sqlalchemy,
    "sqlalchemy.Session": _sqlalchemy_session,
    "sqlalchemy.scoped_session": _sqlalchemy_session,
    "sqlalchemy.AsyncConnection": _async_sqlalchemy,
    "sqlalchemy.AsyncSession": _async_sqlalchemy_session,
    "sqlalchemy.async_scoped_session": _async_sqlalchemy_session,
    "django.BaseDatabaseWrapper": _django,
    "django.ConnectionProxy": _django,
    "sqlite3.Connection": _sqlite,
    "sqlite3.Cursor": _sqlite,
}
"""By the library and the name of the type; subclasses are found through their bases."""
