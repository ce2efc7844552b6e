"""Tasks of an application worker that write down each call before they do anything.

Run by `betimes worker run blackbox.tasks:app`; the ledger's path comes by the environment.
"""

import os
import time
from pathlib import Path

from betimes import App, Context
from blackbox.evidence import Ledger

app = App()
_ledger = Ledger(Path(os.environ["BLACKBOX_LEDGER"]))


def _witness(ctx: Context) -> dict[str, int]:
    _ledger.write(
        {
            "by": "task",
            "run": ctx.run_id,
            "path": "",
            "attempt": ctx.attempt,
            "fence": ctx.fence,
            "scheduled": None,
            "mode": "ok",
        }
    )
    return {"fence": ctx.fence, "attempt": ctx.attempt}


@app.task
def steady(ctx: Context, seconds: float = 0.0) -> dict[str, int]:
    """Work for a while and succeed."""
    said = _witness(ctx)
    if seconds:
        time.sleep(seconds)
    return said


@app.task
def flaky(ctx: Context, seconds: float = 0.0) -> dict[str, int]:
    """Fail at the first attempt."""
    said = _witness(ctx)
    if ctx.attempt == 1:
        time.sleep(seconds)
        raise RuntimeError("the first attempt fails")
    return said


@app.task(queue="later")
def later(ctx: Context) -> dict[str, int]:
    """For runs that wait until somebody serves their queue."""
    return _witness(ctx)
