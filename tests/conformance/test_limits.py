"""Limits: never more in flight than allowed, and everything is given back at the end."""

from typing import Any

import pytest

from betimes import Context
from conformance.bodies import FIXED, FOR_EVER, ONCE, failing, fine, numbers, taking
from conformance.roads import TTL, Can, Road, needs


async def test_no_more_runs_of_a_key_than_it_allows(road: Road) -> None:
    """The others wait, and come when a place is free."""
    road.task("work", taking(road, 10))
    key = {"key": "k", "limit": 2}
    runs = [await road.enqueue("work", concurrency=key) for _ in range(5)]
    other = await road.enqueue("work", concurrency={"key": "other", "limit": 1})
    hand = await road.hire()
    await hand.work()
    assert len(road.began) == 3
    for expected in (5, 6, 6):
        await road.advance(10)
        await hand.work()
        assert len(road.began) == expected
    assert {(await road.look(run)).state for run in (*runs, other)} == {"succeeded"}
    assert road.most_at_once == 3
    assert set(await numbers(road)) == {1}
    assert hand.idle
    assert await road.at_rest()


async def test_a_run_that_waits_for_its_retry_holds_no_place(road: Road) -> None:
    """A place of a key belongs to attempts, not to runs."""
    key = {"key": "k", "limit": 1}
    road.task("flaky", failing(1))
    road.task("fine", fine)
    first = await road.enqueue("flaky", concurrency=key, retry=FIXED)
    hand = await road.hire()
    await hand.work()
    second = await road.enqueue("fine", concurrency=key)
    await hand.work()
    assert (await road.look(second)).state == "succeeded"
    assert (await road.look(first)).state == "retry_wait"
    await road.advance(10)
    await hand.work()
    assert (await road.look(first)).state == "succeeded"
    assert await road.at_rest()


async def test_who_would_rather_not_run_than_wait_is_skipped(road: Road) -> None:
    """`on_limit: skip` ends it at the door."""
    road.task("work", taking(road, 10))
    key = {"key": "k", "limit": 1, "on_limit": "skip"}
    first = await road.enqueue("work", concurrency=key)
    hand = await road.hire()
    await hand.work()
    second = await road.enqueue("work", concurrency=key)
    await hand.work()
    seen = await road.look(second)
    assert (seen.state, seen.attempt, seen.reason) == ("skipped", 0, "CONCURRENCY_KEY_FULL")
    await road.advance(10)
    await hand.work()
    assert (await road.look(first)).state == "succeeded"
    third = await road.enqueue("work", concurrency=key)
    await hand.work()
    await road.advance(10)
    await hand.work()
    assert (await road.look(third)).state == "succeeded"


async def test_the_place_of_a_dead_worker_is_free_when_its_lease_is_over(road: Road) -> None:
    """Not sooner: until then nobody knows that it is dead."""

    async def work(ctx: Context, given: Any) -> Any:
        if given == "first" and ctx.attempt == 1:
            await road.spend(FOR_EVER)
        await road.spend(1)

    key = {"key": "k", "limit": 1}
    road.task("work", work)
    first = await road.enqueue("work", "first", concurrency=key, retry=FIXED)
    one = await road.hire()
    await one.work()
    one.kill()
    second = await road.enqueue("work", "second", concurrency=key)
    two = await road.hire()
    await two.work()
    assert len(road.began) == 1
    await road.advance(TTL + 1)
    for _ in range(4):
        await two.work()
        await road.advance(2)
    await two.work()
    assert (await road.look(first)).state == "succeeded"
    assert (await road.look(second)).state == "succeeded"
    assert await road.at_rest()


@needs(Can.QUEUES)
async def test_no_more_runs_of_a_queue_than_it_allows(road: Road) -> None:
    """`max_concurrency` counts all workers together."""
    road.task("work", taking(road, 5))
    await road.limit("default", max_concurrency=2)
    runs = [await road.enqueue("work") for _ in range(5)]
    hands = [await road.hire(), await road.hire()]
    for expected in (2, 4, 5):
        for hand in hands:
            await hand.work()
        assert len(road.began) == expected
        await road.advance(5)
        for hand in hands:
            await hand.report()
    assert {(await road.look(run)).state for run in runs} == {"succeeded"}
    assert road.most_at_once == 2
    assert all(hand.idle for hand in hands)


@needs(Can.QUEUES)
async def test_no_more_starts_than_a_rate_allows(road: Road) -> None:
    """A token for each start; they come back with time, and not with the ends of runs."""
    road.task("fine", fine)
    await road.limit("default", rate={"limit": 2, "per": 1})
    runs = [await road.enqueue("fine") for _ in range(6)]
    hand = await road.hire()
    for expected in (2, 4, 6):
        await hand.work()
        await hand.work()
        assert len(road.began) == expected
        await road.advance(1)
    assert {(await road.look(run)).state for run in runs} == {"succeeded"}


@needs(Can.QUEUES)
async def test_no_more_starts_of_a_key_than_its_rate_allows(road: Road) -> None:
    """The same by key, beside others that have none."""
    road.task("fine", fine)
    await road.limit("default", per_key_rate={"limit": 1, "per": 1})
    runs = [await road.enqueue("fine", rate_limit_key="stripe") for _ in range(3)]
    other = await road.enqueue("fine")
    hand = await road.hire()
    for expected in (2, 3, 4):
        await hand.work()
        await hand.work()
        assert len(road.began) == expected
        await road.advance(1)
    assert {(await road.look(run)).state for run in (*runs, other)} == {"succeeded"}


@needs(Can.QUEUES, Can.FREE_HANDS)
async def test_what_does_not_start_uses_no_token(road: Road) -> None:
    """What comes too late is over, and the tokens are there for the others."""
    road.task("fine", fine)
    await road.limit("default", rate={"limit": 2, "per": 1})
    for _ in range(3):
        await road.enqueue("fine", start_deadline=1)
    await road.advance(5)
    runs = [await road.enqueue("fine") for _ in range(2)]
    hand = await road.hire()
    await hand.work()
    await hand.work()
    assert len(road.began) == 2
    assert {(await road.look(run)).state for run in runs} == {"succeeded"}


PERIOD, TAKES = 6, 9
ENDS = {
    "allow": {6: "succeeded", 12: "succeeded", 18: "succeeded"},
    "skip": {6: "succeeded", 12: "skipped", 18: "succeeded"},
    "buffer_one": {6: "succeeded", 12: "succeeded", 18: "succeeded"},
    "cancel_running": {6: "cancelled", 12: "cancelled", 18: "succeeded"},
}
"""What becomes of three fires, each of which takes longer than the period."""
STARTS = {
    "allow": [6, 12, 18],
    "skip": [6, 18],
    "buffer_one": [6, 15, 24],
    "cancel_running": [6, 12, 18],
}
"""And when they begin, give or take the time in which workers hear of it."""


@pytest.mark.parametrize("policy", [*ENDS])
async def test_fires_that_overlap_do_as_their_policy_says(road: Road, policy: str) -> None:
    """Beside, not at all, one after the other, or instead of the one before."""

    async def work(ctx: Context, _: Any) -> Any:
        for _second in range(TAKES):
            await road.spend(1)
            ctx.heartbeat()

    ends = "2026-01-01T00:00:20Z"
    every = {"type": "interval", "every": PERIOD, "anchor": "2026-01-01T00:00:00Z"}
    road.task("work", work, schedule=every, end_at=ends, overlap=policy, retry=ONCE)
    await road.hire()
    await road.live(36)
    assert await road.fires("work") == ENDS[policy]
    began = road.began[0].at
    starts = [6 + (one.at - began).total_seconds() for one in road.began]
    assert starts == pytest.approx(STARTS[policy], abs=2)
