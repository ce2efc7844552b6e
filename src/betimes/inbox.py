"""For receivers: make a handler take effect once, whatever is delivered twice.

Deliveries come at least once. A receiver that writes what it did and *that* it did it in one
transaction of its own database takes effect exactly once:

    inbox = Inbox("qmark")                      # sqlite3; "format" for psycopg
    delivery = webhooks.verify(headers, body, secret=secret)
    with connection:                            # one transaction
        if inbox.first(connection, delivery):
            ...                                 # the effect, on the same connection

`AsyncInbox` is the same for asyncpg. A delivery whose fence is lower than one that was seen is
refused: its sender has lost the run and does not know it yet.

The statements here are for the receiver's database, which is why they are not in our store.
"""

from typing import Any, Literal

from betimes.domain.errors import Conflict, Invalid
from betimes.webhooks import Delivery

__all__ = ["SCHEMA", "AsyncInbox", "Inbox", "StaleDelivery"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS betimes_inbox (
    id      text PRIMARY KEY,
    fence   bigint NOT NULL,
    seen_at bigint NOT NULL
)
"""
"""For PostgreSQL and SQLite alike; `seen_at` is the time of the delivery in Unix seconds."""

_INSERT = (
    "INSERT INTO betimes_inbox (id, fence, seen_at) VALUES ({0}, {1}, {2}) ON CONFLICT DO NOTHING"
)
_FENCE = "SELECT fence FROM betimes_inbox WHERE id = {0}"
_RAISE = "UPDATE betimes_inbox SET fence = {1} WHERE id = {0} AND fence < {1}"
_FORGET = "DELETE FROM betimes_inbox WHERE seen_at < {0}"


class StaleDelivery(Conflict):
    """A later attempt of the same run has been here already."""

    default_code = "stale_delivery"


class Inbox:
    """Deliveries that have taken effect, over any DB-API connection."""

    def __init__(self, paramstyle: Literal["qmark", "format"]) -> None:
        marks = {"qmark": ("?1", "?2", "?3"), "format": ("%s", "%s", "%s")}.get(paramstyle)
        if marks is None:
            raise Invalid(f"expected qmark or format, got {paramstyle!r}")
        self._numbered = paramstyle == "qmark"
        self._marks = marks

    def first(self, connection: Any, delivery: Delivery) -> bool:
        """Whether this run takes effect now; call it inside the transaction of the effect.

        False for a repeat; `StaleDelivery` for one from a sender that has lost the run.
        """
        cursor = connection.cursor()
        fence = delivery.fence or 0
        self._run(cursor, _INSERT, delivery.id, fence, delivery.timestamp)
        if cursor.rowcount == 1:
            return True
        self._run(cursor, _FENCE, delivery.id)
        (known,) = cursor.fetchone()
        if fence < known:
            raise _stale(fence, known)
        if self._numbered:
            self._run(cursor, _RAISE, delivery.id, fence)
        else:
            cursor.execute(_RAISE.format("%s", "%s"), (fence, delivery.id, fence))
        return False

    def forget(self, connection: Any, *, before: int) -> int:
        """Drop what is older than a time in Unix seconds; how many."""
        cursor = connection.cursor()
        self._run(cursor, _FORGET, before)
        return int(cursor.rowcount)

    def _run(self, cursor: Any, statement: str, *given: Any) -> None:
        cursor.execute(statement.format(*self._marks), given)


class AsyncInbox:
    """The same over asyncpg."""

    async def first(self, connection: Any, delivery: Delivery) -> bool:
        """Whether this run takes effect now; call it inside the transaction of the effect."""
        fence = delivery.fence or 0
        insert = _INSERT.format("$1", "$2", "$3")
        done = await connection.execute(insert, delivery.id, fence, delivery.timestamp)
        if done == "INSERT 0 1":
            return True
        known = await connection.fetchval(_FENCE.format("$1"), delivery.id)
        if fence < known:
            raise _stale(fence, known)
        await connection.execute(_RAISE.format("$1", "$2"), delivery.id, fence)
        return False

    async def forget(self, connection: Any, *, before: int) -> int:
        """Drop what is older than a time in Unix seconds; how many."""
        done = await connection.execute(_FORGET.format("$1"), before)
        return int(done.split()[1])


def _stale(fence: int, known: int) -> StaleDelivery:
    return StaleDelivery(f"expected a fence of at least {known}, got {fence}")
