"""A part of a transaction that can be taken back alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from betimes.domain.errors import Refused
from betimes.store.pool import Connection


@asynccontextmanager
async def savepoint(connection: Connection) -> AsyncIterator[None]:
    """What is refused inside leaves nothing behind; other errors end the whole transaction.

    Written out, because our transactions begin with a message of our own.
    """
    await connection.execute("SAVEPOINT part")
    try:
        yield
    except Refused:
        await connection.execute("ROLLBACK TO SAVEPOINT part")
        raise
    await connection.execute("RELEASE SAVEPOINT part")
