"""PgQueuer, driven from an environment of its own: `python pgqueuer_peer.py MODE DSN ...`.

install                 its tables
fill COUNT [DUE]        jobs in bulk, ready or due at a time in seconds since 1970
enqueue COUNT PAUSE     one after the other, each with the time of its call
work FILE CONCURRENCY   a worker, until SIGTERM; then the notes of when jobs started
"""

import asyncio
import importlib
import signal
import sys
import time
from array import array
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

NAME = "note"
CHUNK = 1_000
BATCH = 500


async def connected(dsn: str) -> Any:
    """A driver on a connection of its own."""
    return importlib.import_module("pgqueuer.db").AsyncpgDriver(await asyncpg.connect(dsn))


async def queries(dsn: str) -> Any:
    """Its statements."""
    return importlib.import_module("pgqueuer.queries").Queries(await connected(dsn))


async def fill(dsn: str, count: int, due: float | None) -> None:
    """Many to a transaction."""
    asking = await queries(dsn)
    payload = b"" if due is None else str(due).encode()
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        later = None if due is None else [timedelta(seconds=due - time.time())] * size
        await asking.enqueue([NAME] * size, [payload] * size, [0] * size, later)


async def enqueue(dsn: str, count: int, pause: float) -> None:
    """One at a time."""
    asking = await queries(dsn)
    for _ in range(count):
        await asyncio.sleep(pause)
        await asking.enqueue(NAME, str(time.time()).encode())


async def work(dsn: str, file: str, concurrency: int) -> None:
    """Until told to stop."""
    notes = array("d")
    pgq = importlib.import_module("pgqueuer").PgQueuer(await connected(dsn))

    @pgq.entrypoint(NAME)  # type: ignore[untyped-decorator]
    async def note(job: Any) -> None:
        now = time.time()
        due = float(job.payload) if job.payload else now
        notes.append(due)
        notes.append(now - due)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, pgq.shutdown.set)
    print("ready", flush=True)
    await pgq.run(
        batch_size=BATCH,
        max_concurrent_tasks=max(concurrency, 2 * BATCH),
        dequeue_timeout=timedelta(seconds=1),
    )
    Path(file).write_bytes(notes.tobytes())  # noqa: ASYNC240 -- nothing else is left to do


async def main(mode: str, dsn: str, *rest: str) -> None:
    """Do what was asked for."""
    if mode == "install":
        await (await queries(dsn)).install()
    elif mode == "fill":
        await fill(dsn, int(rest[0]), float(rest[1]) if len(rest) > 1 else None)
    elif mode == "enqueue":
        await enqueue(dsn, int(rest[0]), float(rest[1]))
    else:
        await work(dsn, rest[0], int(rest[1]))


if __name__ == "__main__":
    try:
        importlib.import_module("uvloop").run(main(*sys.argv[1:]))
    except asyncio.CancelledError:
        sys.exit(0)
