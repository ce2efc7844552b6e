"""Callbacks: a job or a run says who is told how it ended, and they are told."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from betimes.domain.callback import callback_endpoint_id
from betimes.domain.ids import ShardId, to_text
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.endpoints import get_endpoint, list_endpoints
from betimes.ops.enqueue import enqueue_run as enqueue
from betimes.ops.manual import run_now
from betimes.store.prune import Pruning
from betimes.testing import ManualClock
from notify_kit import FIRST, a_dispatcher, an_endpoint
from ops_kit import SHARDS, TENANT, every, fetch
from target_kit import a_target
from worker_kit import a_worker

ONCE = {"retry": {"max_attempts": 1}}


async def work(desk: Desk, clock: ManualClock) -> None:
    async with a_worker(desk.database, clock) as bench:
        await bench.poll_once()


def told(received: list[Any]) -> list[tuple[str, str]]:
    bodies = [json.loads(one.body) for one in received]
    return [(body["type"], body["data"]["run_id"]) for body in bodies]


@pytest.mark.parametrize(
    ("handler", "on", "expected"),
    [
        ("noop", ["success"], ["run.succeeded"]),
        ("noop", ["failure"], []),
        ("fail", ["success"], []),
        ("fail", ["failure"], ["run.dead"]),
        ("fail", ["run.dead"], ["run.dead"]),
        ("fail", ["run.expired", "run.cancelled"], []),
        ("noop", ["run.succeeded"], ["run.succeeded"]),
        ("fail", None, ["run.dead"]),
        ("noop", None, ["run.succeeded"]),
    ],
)
async def test_a_run_calls_back(
    desk: Desk, clock: ManualClock, handler: str, on: list[str] | None, expected: list[str]
) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        callback = {"url": target.url("/done")} | ({} if on is None else {"on": on})
        options = {**ONCE, "notify": [callback]}
        run = await enqueue(desk, TENANT, NewRun(handler=handler, options=options))
        # Somebody else's success is nobody's news.
        await enqueue(desk, TENANT, NewRun(handler="noop"))
        await work(desk, clock)
        await bench.turn()
        assert told(target.received) == [(kind, to_text("run", run)) for kind in expected]


async def test_a_job_calls_back_for_each_of_its_runs(desk: Desk, clock: ManualClock) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        options = {"notify": [{"url": target.url("/done"), "on": ["success"]}]}
        job = await create_job(
            desk,
            TENANT,
            NewJob(definition=every(86_400, schedule={"overlap": "allow"}, options=options)),
        )
        runs = [await run_now(desk, TENANT, job.id) for _ in range(2)]
        await work(desk, clock)
        await bench.turn()
        assert sorted(run for _, run in told(target.received)) == sorted(
            to_text("run", run) for run in runs
        )
        # One endpoint stands for the URL, and is not among those people made.
        identity = callback_endpoint_id(TENANT, target.url("/done"), shards=SHARDS)
        endpoint, _ = await get_endpoint(desk, TENANT, identity)
        assert endpoint.is_callback
        shown = await list_endpoints(desk, TENANT, after=FIRST, callbacks=False, most=10)
        assert shown == []


async def test_an_endpoint_can_be_called_back_whatever_it_listens_to(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        endpoint = await an_endpoint(desk, target.url(), types=["job.deleted"])
        options = {"notify": [{"endpoint": to_text("ep", endpoint.id)}]}
        run = await enqueue(desk, TENANT, NewRun(handler="noop", options=options))
        await work(desk, clock)
        await bench.turn()
        assert told(target.received) == [("run.succeeded", to_text("run", run))]


async def test_without_a_callback_nothing_is_written_for_a_success(
    desk: Desk, clock: ManualClock
) -> None:
    await enqueue(desk, TENANT, NewRun(handler="noop"))
    await work(desk, clock)
    assert await fetch(desk.database, "SELECT FROM betimes.outbox") == []


async def test_an_endpoint_that_hears_successes_has_them_written(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        await an_endpoint(desk, target.url(), types=["run.succeeded"])
        run = await enqueue(desk, TENANT, NewRun(handler="noop"))
        await work(desk, clock)
        await bench.turn()
        assert told(target.received) == [("run.succeeded", to_text("run", run))]


async def test_a_callback_that_fails_is_not_forgiven_by_the_next_one(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target(status=500) as target, a_dispatcher(desk) as bench:
        options = {"notify": [{"url": target.url("/done")}]}
        for _ in range(2):
            await enqueue(desk, TENANT, NewRun(handler="noop", options=options))
            await work(desk, clock)
            await bench.turn()
        identity = callback_endpoint_id(TENANT, target.url("/done"), shards=SHARDS)
        _, box = await get_endpoint(desk, TENANT, identity)
        assert box is not None
        assert box.failures == 2


async def test_idle_callbacks_are_forgotten_and_come_back_when_needed(
    desk: Desk, clock: ManualClock
) -> None:
    async with a_target() as target, a_dispatcher(desk) as bench:
        options = {"notify": [{"url": target.url("/done")}]}
        kept = await an_endpoint(desk, target.url("/kept"), types=["run.succeeded"])

        async def run_once() -> None:
            await enqueue(desk, TENANT, NewRun(handler="noop", options=options))
            await work(desk, clock)
            await bench.turn()

        async def prune(before: datetime) -> int:
            pruning = Pruning(desk.database)
            return sum(
                [await pruning.callbacks(ShardId(one), before=before) for one in range(SHARDS)]
            )

        await run_once()
        assert await prune(clock.now()) == 0
        clock.advance(timedelta(days=8))
        assert await prune(clock.now() - timedelta(days=7)) == 1
        shown = await list_endpoints(desk, TENANT, after=FIRST, callbacks=True, most=10)
        assert [endpoint.id for endpoint, _ in shown] == [kept.id]
        await run_once()
        assert [one.path for one in target.received].count("/done") == 2
