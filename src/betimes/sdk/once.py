"""Effects that happen once, by a row in the user's own database."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from betimes.domain.errors import Invalid
from betimes.inbox import AsyncInbox, Inbox
from betimes.webhooks import Delivery

QMARK, FORMAT = "qmark", "format"
IDLE = 0


class Once:
    """A block that tells whether it is the first with its key; also for `async with`."""

    def __init__(self, connection: Any, key: str, seen_at: int) -> None:
        self._connection = connection
        # Keys are the user's and may be shared by runs, whose fences have nothing in common.
        self._delivery = Delivery(id=key, timestamp=seen_at)
        self._ending: AbstractContextManager[Any] | None = None
        self._transaction: Any = None

    def __enter__(self) -> bool:
        connection, style = _plain(self._connection)
        self._ending = _Ending(self._connection)
        self._ending.__enter__()
        try:
            return Inbox(style).first(connection, self._delivery)
        except BaseException as error:
            self._ending.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ending is not None:
            self._ending.__exit__(kind, error, trace)

    async def __aenter__(self) -> bool:
        self._transaction = self._connection.transaction()
        await self._transaction.__aenter__()
        try:
            return await AsyncInbox().first(self._connection, self._delivery)
        except BaseException as error:
            await self._transaction.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._transaction.__aexit__(kind, error, trace)


class _Ending:
    """Ends a transaction that was not open before."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._ours = not _is_open(connection)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if not self._ours:
            return
        if error is None:
            self._connection.commit()
        else:
            self._connection.rollback()


def _is_open(connection: Any) -> bool:
    """Whether somebody has begun a transaction: sqlite3, SQLAlchemy and psycopg each tell it."""
    asked = getattr(connection, "in_transaction", None)
    if asked is not None:
        return bool(asked() if callable(asked) else asked)
    info = getattr(connection, "info", None)
    if info is not None and not getattr(connection, "autocommit", False):
        return bool(info.transaction_status != IDLE)
    raise Invalid(
        "expected a connection of sqlite3, psycopg (without autocommit) or SQLAlchemy, "
        f"got {type(connection).__module__}.{type(connection).__name__}"
    )


def _plain(connection: Any) -> tuple[Any, Any]:
    """The DB-API connection underneath, and how it writes parameters."""
    if type(connection).__module__.startswith("sqlalchemy"):
        inner = connection.connection
        pooled = inner().connection if callable(inner) else inner
        connection = getattr(pooled, "dbapi_connection", None) or pooled
    home = type(connection).__module__.partition(".")[0]
    return connection, QMARK if "sqlite" in home else FORMAT
