"""The other process of `bench tasks`: enqueues by the client library, or works as an app's worker.

Told on the command line: what to do, where the service and the database are, how much, how wide.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from betimes import App
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.direct_desk import grounds
from betimes.app.hands import Runs
from betimes.app.loop import run_to_end
from betimes.app.task_worker import TaskWorker
from betimes.config import DatabaseSettings, Settings
from betimes.rhythm import Stopping
from betimes.runtime.http_line import http_lines
from betimes.runtime.worker import Worker, WorkerOptions
from betimes.telemetry import Telemetry

BATCH = 1_000
app = App(name="bench")
done = 0
wanted = 0
finished = asyncio.Event()
began_at = cpu_at = 0.0


def note() -> None:
    """One more call; the last one is told."""
    global done, began_at, cpu_at  # noqa: PLW0603 -- counts what handlers do
    if not done:
        began_at, cpu_at = time.perf_counter(), time.process_time()
    done += 1
    if done == wanted:
        finished.set()


@app.task
async def tick(number: int) -> None:  # noqa: ARG001 -- sent, not used
    """An async task that does nothing."""
    note()


@app.task
def tock(number: int) -> None:  # noqa: ARG001 -- sent, not used
    """A plain task that does nothing, in a thread."""
    loop.call_soon_threadsafe(note)


loop: asyncio.AbstractEventLoop


def enqueue_blocking(count: int) -> None:
    """One after the other, from one thread."""
    for number in range(count):
        tick.enqueue(number)


async def enqueue_awaited(count: int, width: int) -> None:
    """Many callers at once."""
    left = iter(range(count))

    async def caller() -> None:
        for number in left:
            await tick.aenqueue(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(caller())


async def work(worker: Runs, count: int) -> dict[str, float]:
    """Seconds and CPU seconds from the first call until all is reported and the worker has gone."""
    global wanted, loop
    wanted, loop = count, asyncio.get_running_loop()
    stopping = Stopping()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stopping))
        await finished.wait()
        stopping.request("done")
    return {
        "seconds": time.perf_counter() - began_at,
        "worker_cpu": time.process_time() - cpu_at,
    }


@asynccontextmanager
async def a_worker(mode: str, url: str, key: str, dsn: str, width: int) -> AsyncIterator[Runs]:
    """A worker of this app, over HTTP or on the database."""
    clock, dice = SystemClock(), Dice()
    telemetry = Telemetry(clock=clock)
    options = WorkerOptions(name="bench", concurrency=width, grace=timedelta(seconds=30))
    if mode == "http":
        yield Worker(
            app=app,
            open_line=http_lines(url, key),
            clock=clock,
            roll=dice.roll,
            options=options,
            telemetry=telemetry,
        )
        return
    settings = Settings(database=DatabaseSettings(dsn=dsn))
    async with grounds(settings, clock=clock, dice=dice, tenant=None) as stands_on:
        yield TaskWorker(
            app=app, grounds=stands_on, clock=clock, options=options, telemetry=telemetry
        )


async def main(mode: str, url: str, key: str, dsn: str, count: int, width: int) -> dict[str, Any]:
    """Do it; what it took."""
    app._url, app._api_key = url, key  # noqa: SLF001 -- told too late for the constructor
    started = time.perf_counter()
    if mode == "blocking":
        await asyncio.to_thread(enqueue_blocking, count)
    elif mode == "awaited":
        await enqueue_awaited(count, width)
    elif mode.startswith("many"):
        task = tock if mode.endswith("plain") else tick
        for start in range(0, count, BATCH):
            group = [task.prepare(start + place) for place in range(min(BATCH, count - start))]
            await app.aenqueue_many(group)
    else:
        async with a_worker(mode, url, key, dsn, width) as worker:
            return await work(worker, count)
    return {"seconds": time.perf_counter() - started}


if __name__ == "__main__":
    mode, url, key, dsn, count, width = sys.argv[1:]
    told: dict[str, Any] = {}

    async def run() -> int:
        """The figures, on the loop that workers use."""
        told.update(await main(mode, url, key, dsn, int(count), int(width)))
        return 0

    run_to_end(run())
    print(json.dumps(told))
