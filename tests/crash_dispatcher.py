"""A dispatcher in a process of its own that kills itself at one place, or never.

python crash_dispatcher.py DSN PLACE — hands out and sends until it is dead. Places:

    handing   events were put into mailboxes, the commit has not begun
    handed    just after that commit
    sent      a receiver has answered, nothing is marked
    marking   what came of it is written, the commit has not begun
    marked    just after that commit
    never
"""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from betimes.config.settings import DatabaseSettings
from betimes.dispatcher import courier, route
from betimes.dispatcher.send import Sender
from betimes.ops.desk import Desk
from betimes.store import database, deliveries
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.store.pool import Connection
from betimes.testing.real_clock import RealClock
from notify_kit import a_dispatcher, half
from ops_kit import SHARDS

PLACE = sys.argv[2]
LEASE = timedelta(seconds=1)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def deadly_commits() -> None:
    """Die before or after the commit of a transaction that has called one of our functions."""
    commit, noted = database._commit, {"hand": set[int](), "mark": set[int]()}

    def noting(work: Any, what: str) -> Any:
        async def wrapped(connection: Connection, *args: Any, **more: Any) -> Any:
            done = await work(connection, *args, **more)
            if what == "mark" or done:
                noted[what].add(connection.get_server_pid())
            return done

        return wrapped

    async def deadly(connection: Connection) -> None:
        pid = connection.get_server_pid()
        if (PLACE == "handing" and pid in noted["hand"]) or (
            PLACE == "marking" and pid in noted["mark"]
        ):
            die()
        await commit(connection)
        if (PLACE == "handed" and pid in noted["hand"]) or (
            PLACE == "marked" and pid in noted["mark"]
        ):
            die()
        for pids in noted.values():
            pids.discard(pid)

    route.hand_out = noting(route.hand_out, "hand")  # type: ignore[attr-defined]
    courier.rows.mark = noting(deliveries.mark, "mark")  # type: ignore[attr-defined]
    database._commit = deadly


def deadly_answers() -> None:
    send = Sender._judged

    def judged(self: Sender, result: Any) -> Any:
        if PLACE == "sent":
            die()
        return send(self, result)

    Sender._judged = judged  # type: ignore[method-assign]


async def main() -> None:
    deliveries.LEASE = LEASE
    deadly_commits()
    deadly_answers()
    clock = RealClock()
    opened = await Database.open(DatabaseSettings(), dsn=sys.argv[1], clock=clock, roll=half)
    desk = Desk(
        database=opened,
        clock=clock,
        hints=NoHints(),
        entropy=os.urandom,
        shards=SHARDS,
        tzdata="2026a",
    )
    async with a_dispatcher(desk) as bench:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            await bench.router.tick()
            await bench.courier.tick()
            await clock.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
