"""Hints leave after the commit, the first at once, the rest folded; losing them harms nobody."""

import asyncio
from datetime import datetime, timedelta

from betimes.domain.ids import ShardId, to_ms
from betimes.domain.run import NewRun
from betimes.ops import NewJob, create_job, enqueue_run
from betimes.store.database import Database
from betimes.store.hints import PAUSE_SECONDS, PLAN, READY, Hints
from betimes.testing import ManualClock
from ops_kit import SECOND, TENANT, every, make_desk
from store_kit import eventually, owner

ZERO, ONE = ShardId(0), ShardId(1)


def payload(shard: ShardId, queue: str, at: datetime) -> str:
    return f"{shard}:{queue}:{TENANT}:{to_ms(at)}"


async def test_the_first_hint_leaves_at_once_and_the_rest_are_folded(
    dsn: str, database: Database, clock: ManualClock
) -> None:
    hints, heard = Hints(database=database, clock=clock), list[str]()
    now = clock.now()
    async with owner(dsn) as listener:
        await listener.add_listener(READY, lambda *given: heard.append(str(given[3])))
        hints.hint(ZERO, "a", TENANT, now)
        assert await hints.tick() is None
        for seconds in (3, 1):
            hints.hint(ZERO, "a", TENANT, now + seconds * SECOND)
        hints.hint(ONE, "a", TENANT, now)
        pause = await hints.tick()
        assert pause == PAUSE_SECONDS
        clock.advance(pause)
        assert await hints.tick() is None
        together = f"{payload(ZERO, 'a', now + SECOND)},2000\n{payload(ONE, 'a', now)}"
        expected = [payload(ZERO, "a", now), together]
        await eventually(lambda: _is(heard, expected), what="two hints")
    assert (hints.sent, hints.failures) == (2, 0)


async def test_planners_are_told_about_new_jobs(
    dsn: str, database: Database, clock: ManualClock
) -> None:
    hints, heard = Hints(database=database, clock=clock), list[tuple[str, str]]()
    desk = make_desk(database, clock, hints=hints)
    async with owner(dsn) as listener:
        for channel in (READY, PLAN):
            await listener.add_listener(channel, lambda *got: heard.append((got[2], str(got[3]))))
        job = await create_job(desk, TENANT, NewJob(definition=every(60)))
        run = await enqueue_run(desk, TENANT, NewRun(handler="a"))
        async with asyncio.TaskGroup() as tasks:
            loop = tasks.create_task(hints.run())
            await eventually(lambda: _is_long(heard, 2), what="two hints")
            loop.cancel()
    shard = (run.int >> 64) & 4095
    assert sorted(heard) == sorted(
        [(PLAN, str(job.shard)), (READY, payload(ShardId(shard), "default", clock.now()))]
    )


async def test_a_hint_that_cannot_be_sent_is_only_counted(
    database: Database, clock: ManualClock
) -> None:
    hints = Hints(database=database, clock=clock)
    await database.close()
    hints.hint(ZERO, "a", TENANT, clock.now() + timedelta(0))
    assert await hints.tick() is None
    assert (hints.sent, hints.failures) == (0, 1)


async def _is(heard: list[str], expected: list[str]) -> bool:
    return heard == expected


async def _is_long(heard: list[tuple[str, str]], length: int) -> bool:
    return len(heard) == length
