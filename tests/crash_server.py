"""The API in a process of its own that kills itself at one commit: before it, or just after.

python crash_server.py DSN before|after|never — prints its port and a key, then serves. The commit
is the first one of a transaction that has kept an idempotency key.
"""

import asyncio
import os
import signal
import sys
from typing import Any

from api_kit import served
from betimes.store import database, groups, idempotency
from betimes.store.pool import Connection

WHEN = sys.argv[2]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    commit = database._commit
    kept: set[int] = set()

    def noting(keep: Any) -> Any:
        async def noted(connection: Connection, *args: object) -> object:
            kept.add(connection.get_server_pid())
            return await keep(connection, *args)

        return noted

    async def deadly(connection: Connection) -> None:
        guarded = connection.get_server_pid() in kept
        if guarded and WHEN == "before":
            die()
        await commit(connection)
        if guarded and WHEN == "after":
            die()

    from betimes.ops import idempotency as ops  # noqa: PLC0415 -- patched where they are used
    from betimes.ops import together  # noqa: PLC0415

    ops.claim_key = noting(idempotency.claim_key)  # type: ignore[attr-defined]
    together.keep_group = noting(groups.keep_group)  # type: ignore[attr-defined]
    database._commit = deadly
    async with served(sys.argv[1]) as api:
        sys.stdout.write(f"{api.port} {await api.key()}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
