"""An app whose tasks note when they start, for `betimes worker run bench.kit.noting_app:app`.

What was noted is left in the file that BENCH_NOTES names when the process ends, as `Noted` reads
it: when the run was wanted, and how much later it started. A task that is told no time notes now.
"""

import asyncio
import atexit
import os
import sys
import time
from array import array
from pathlib import Path

from betimes import App

app = App(name="bench")
notes: list[tuple[float, float]] = []


@app.task
async def note(wanted: float | None = None) -> None:
    """On the event loop."""
    now = time.time()
    due = now if wanted is None else wanted
    notes.append((due, now - due))


@app.task
def note_plain(wanted: float | None = None) -> None:
    """In a thread."""
    now = time.time()
    due = now if wanted is None else wanted
    notes.append((due, now - due))


def leave() -> None:
    """Write them down."""
    if file := os.environ.get("BENCH_NOTES"):
        flat = array("d", (value for pair in notes for value in pair))
        Path(file).write_bytes(flat.tobytes())


atexit.register(leave)


async def enqueue(count: int, pause: float) -> None:
    """One after the other, each with the time of its call."""
    for _ in range(count):
        await asyncio.sleep(pause)
        await note.aenqueue(time.time())


if __name__ == "__main__":
    asyncio.run(enqueue(int(sys.argv[1]), float(sys.argv[2])))
