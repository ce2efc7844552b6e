"""An app whose tasks run in processes of their own and in workers that are killed."""

import os
import time
from pathlib import Path

from betimes import App, Context

app = App(name="protocol")


@app.task(pool="process", retry={"max_attempts": 2, "initial": 0, "jitter": "none"})
def compute(ctx: Context, numbers: list[int]) -> int:
    """Adds up, telling how far it is."""
    ctx.log.info("computing", pid=os.getpid())
    for place, _ in enumerate(numbers):
        ctx.progress((place + 1) / len(numbers))
    ctx.checkpoint({"sum": sum(numbers)})
    return sum(numbers)


@app.task(pool="process", retry={"max_attempts": 2, "initial": 0, "jitter": "none"})
def die_once(ctx: Context) -> int:
    """Takes its process along, the first time."""
    if ctx.attempt == 1:
        os._exit(9)
    return ctx.attempt


@app.task(pool="process", timeout=0.5, retry={"max_attempts": 1})
def spin() -> None:
    """Never ends by itself and listens to nobody."""
    while True:
        pass


@app.task(pool="process")
def until_told(ctx: Context) -> None:
    """Ends when it is asked to."""
    ctx.log.info("waiting")
    while not ctx.cancelled:
        time.sleep(0.01)
    ctx.stop("as wished")


@app.task(retry={"max_attempts": 10, "initial": 0, "jitter": "none"})
def witnessed(ctx: Context, folder: str) -> int:
    """Says all there is to say, and leaves a trace of every attempt."""
    with (Path(folder) / ctx.run_id).open("a") as trace:
        trace.write(f"{ctx.attempt} {ctx.fence}\n")
    ctx.log.info("working")
    ctx.checkpoint({"attempt": ctx.attempt})
    ctx.progress(0.5)
    time.sleep(1.0)
    return ctx.fence
