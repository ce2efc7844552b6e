"""Runs leave nothing behind in the memory of an app's worker."""

import gc
from collections import Counter

from api_kit import DEFAULT, Served
from betimes import App, Context
from betimes.store.partitions import Partitions
from betimes.telemetry import Event
from runtime_kit import Direct, eventually, working
from worker_kit import enqueue, rows

RUNS, LEFT_MAX = 400, 60


def ours() -> Counter[str]:
    """Live objects of our own classes; what the test itself records is not among them."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    return Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if str(kind.__module__).startswith("betimes.") and kind is not Event
    )


async def test_runs_leave_nothing(served: Served, app: App, dsn: str) -> None:
    """Those that say something as well: a log, a checkpoint."""

    @app.task(name="noop")
    async def noop(ctx: Context) -> None:
        ctx.checkpoint({"n": 1})

    database, now = served.desk.database, served.service.clock.now()
    await Partitions(database).ensure(now.date(), ahead_days=1)

    async def done() -> bool:
        return not await rows(database, "SELECT FROM betimes.parcels")

    async with working(app, Direct(served, dsn), concurrency=50):
        counts: list[Counter[str]] = []
        for _ in range(3):
            await enqueue(database, now, ["noop"] * RUNS, tenant=DEFAULT)
            await eventually(done, seconds=60)
            counts.append(ours())
    grown = counts[2] - counts[1]
    assert grown.total() <= LEFT_MAX, grown.most_common(5)
