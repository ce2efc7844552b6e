"""Leases: who holds a run, for how long, and what is believed of whom."""

import asyncio
from typing import Any

from betimes import Context
from conformance.bodies import FIXED, FOR_EVER, ONCE, failing, fine, numbers, taking
from conformance.roads import TTL, Can, Road, needs


@needs(Can.LOSE_LEASE)
async def test_the_word_of_whoever_lost_the_lease_is_not_believed(road: Road) -> None:
    """Another worker's result stands; the first one comes too late and changes nothing."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(TTL + 5)
        return f"by attempt {ctx.attempt}"

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    first.frozen = True
    await road.advance(TTL + 1)
    second = await road.hire()
    await second.work()
    await road.advance(5)
    first.frozen = False
    await first.report()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, "by attempt 2")
    assert seen.attempts == ((1, "abandoned"),)
    await first.work()
    assert first.idle
    assert second.idle
    assert await road.at_rest()


@needs(Can.LOSE_LEASE)
async def test_the_word_of_whoever_lost_the_lease_ends_nothing_that_is_under_way(
    road: Road,
) -> None:
    """While another worker is at it, neither a late success nor a late failure counts."""

    async def work(ctx: Context, given: Any) -> Any:
        await road.spend(TTL + 5 if ctx.attempt == 1 else 20)
        if given == "fail" and ctx.attempt == 1:
            raise ValueError("too late")
        return ctx.attempt

    road.task("work", work)
    runs = [await road.enqueue("work", given, retry=FIXED) for given in ("fail", "succeed")]
    first = await road.hire()
    await first.work()
    first.frozen = True
    await road.advance(TTL + 1)
    second = await road.hire()
    await second.work()
    await road.advance(5)
    await first.report()
    assert [(await road.look(run)).state for run in runs] == ["running", "running"]
    await road.advance(20)
    await second.work()
    for run in runs:
        seen = await road.look(run)
        assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)
        assert seen.attempts == ((1, "abandoned"),)


@needs(Can.LOSE_LEASE)
async def test_a_workers_own_older_word_is_not_believed(road: Road) -> None:
    """Who lost a lease and got the run anew is heard under the new one only: the fence decides."""

    async def work(ctx: Context, given: Any) -> Any:
        await road.spend(5 if ctx.attempt == 1 else 10)
        if given == "fail" and ctx.attempt == 1:
            raise ValueError("too late")
        return ctx.attempt

    road.task("work", work)
    runs = [await road.enqueue("work", given, retry=FIXED) for given in ("fail", "succeed")]
    hand = await road.hire()
    await hand.work()
    for run in runs:
        await road.expire(run)
    await hand.work()
    assert sorted(await numbers(road)) == [1, 1, 2, 2]
    hand.frozen = True
    await road.advance(5)
    await hand.report()
    assert [(await road.look(run)).state for run in runs] == ["running", "running"]
    await road.advance(5)
    await hand.work()
    for run in runs:
        seen = await road.look(run)
        assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)
        assert seen.attempts == ((1, "abandoned"),)
    assert await road.at_rest()


@needs(Can.LOSE_LEASE)
async def test_a_stale_word_is_refused_alone(road: Road) -> None:
    """Of ends that are told together each stands for itself: one lost lease spoils no other."""
    road.task("work", taking(road, 5))
    runs = await road.enqueue_together(
        "work",
        {"priority": 3, "retry": FIXED},
        {"priority": 5, "retry": FIXED},
        {"priority": 7, "retry": FIXED},
    )
    first = await road.hire()
    await first.work()
    assert len(road.began) == 3
    await road.expire(runs[1])
    second = await road.hire()
    await second.work()
    first.frozen = second.frozen = True
    await road.advance(5)
    await first.report()
    states = [(await road.look(run)).state for run in runs]
    assert states == ["succeeded", "running", "succeeded"]
    second.frozen = False
    await second.work()
    seen = await road.look(runs[1])
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)


@needs(Can.LOSE_LEASE)
async def test_an_end_whose_answer_got_lost_is_told_again_without_harm(road: Road) -> None:
    """Repeated until somebody answers; what was written the first time is recognised."""
    road.task("fine", fine)
    road.task("flaky", failing(1))
    ended = await road.enqueue("fine", "done")
    again = await road.enqueue("flaky", retry=FIXED)
    hand = await road.hire()
    await hand.take()
    with hand.reply_lost():
        await hand.report()
    seen = await road.look(ended)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, "done")
    seen = await road.look(again)
    assert (seen.state, seen.attempt, seen.attempts) == ("retry_wait", 1, ((1, "failed"),))
    assert hand.idle
    await road.advance(10)
    await hand.work()
    assert (await road.look(again)).state == "succeeded"
    assert len(road.began) == 3
    assert await road.at_rest()


@needs(Can.LOSE_LEASE)
async def test_heartbeats_keep_what_is_held(road: Road) -> None:
    """However many leases long an attempt takes, it stays the first one while its worker beats."""
    road.task("long", taking(road, 5 * TTL))
    run = await road.enqueue("long", retry=FIXED)
    hand, other = await road.hire(), await road.hire()
    await hand.work()
    for _ in range(5):
        await road.advance(TTL)
        await other.work()
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.attempts) == ("succeeded", 1, ())
    assert await numbers(road) == [1]


@needs(Can.LOSE_LEASE, Can.INTERRUPT)
async def test_a_worker_stops_trusting_a_lease_before_others_may_have_it(road: Road) -> None:
    """Whose heartbeats are not answered stops what it does in time, and says nothing about it."""
    stopped: list[int] = []

    async def long(ctx: Context, _: Any) -> Any:
        if ctx.attempt > 1:
            return ctx.attempt
        seconds = 0
        try:
            while True:
                await road.spend(1)
                seconds += 1
        except asyncio.CancelledError:
            stopped.append(seconds)
            raise

    road.task("long", long)
    run = await road.enqueue("long", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    hand.silent = True
    for _ in range(TTL - 1):
        await road.advance(1)
    assert len(stopped) == 1, "it went on under a lease that it could not be sure of"
    assert 0 < stopped[0] < TTL
    await hand.report()
    assert (await road.look(run)).state == "running", "nobody has said anything about it"
    await road.advance(2)
    other = await road.hire()
    await other.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)
    assert hand.idle


@needs(Can.LOSE_LEASE, Can.INTERRUPT)
async def test_a_worker_that_hears_of_a_lost_lease_stops_what_it_did_under_it(road: Road) -> None:
    """The next heartbeat says what is not ours any more; nothing is reported about it."""
    stopped: list[int] = []

    async def work(ctx: Context, _: Any) -> Any:
        try:
            await road.spend(20)
        except asyncio.CancelledError:
            stopped.append(ctx.attempt)
            raise
        return ctx.attempt

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    await road.expire(run)
    second = await road.hire()
    await second.work()
    await road.advance(1)
    await first.report()
    assert stopped == [1]
    assert first.idle
    await road.advance(19)
    await second.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)


@needs(Can.LOSE_LEASE)
async def test_fences_rise_with_every_lease(road: Road) -> None:
    """Whatever was the reason for it: who keeps the highest can refuse all others."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(FOR_EVER)
        if ctx.attempt == 2:
            raise ValueError("again")

    road.task("work", work)
    await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    first.kill()
    await road.advance(TTL + 1)
    second = await road.hire()
    await second.work()
    await road.advance(10)
    await second.work()
    fences = [one.fence for one in road.began]
    assert fences == sorted(set(fences))
    assert len(fences) == 3


@needs(Can.DRAIN)
async def test_what_a_worker_gives_back_costs_no_attempt(road: Road) -> None:
    """Who goes gives back what it could not finish; another one begins it as the same attempt."""

    async def work(ctx: Context, _: Any) -> Any:
        if len(road.began) == 1:
            await road.spend(FOR_EVER)
        return ctx.attempt

    road.task("work", work)
    run = await road.enqueue("work", retry=ONCE)
    first = await road.hire()
    await first.work()
    await first.go()
    assert first.idle
    second = await road.hire()
    await second.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result, seen.attempts) == ("succeeded", 1, 1, ())
    assert await numbers(road) == [1, 1]
    assert await road.letters() == []
    assert await road.at_rest()


@needs(Can.DRAIN)
async def test_what_is_given_back_is_queued_again(road: Road) -> None:
    """It did not fail, so it waits for a worker and not for a retry, and says what happened."""
    road.task("work", taking(road, FOR_EVER))
    run = await road.enqueue("work")
    hand = await road.hire()
    await hand.work()
    await hand.go()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.error) == ("queued", 0, None)
    assert seen.reason == "RELEASED"


@needs(Can.DRAIN)
async def test_what_has_ended_is_told_before_a_worker_goes(road: Road) -> None:
    """Of what it holds some is done: that is done, and only the rest is given back."""

    async def work(ctx: Context, given: Any) -> Any:
        if given == "long":
            await road.spend(FOR_EVER)
        return given

    road.task("work", work)
    done = await road.enqueue("work", "short")
    left = await road.enqueue("work", "long")
    hand = await road.hire()
    await hand.take()
    await hand.go()
    assert (await road.look(done)).state == "succeeded"
    seen = await road.look(left)
    assert (seen.state in {"queued", "retry_wait"}, seen.attempt) == (True, 0)
    assert hand.idle


@needs(Can.UNKNOWN)
async def test_a_run_waits_for_a_worker_that_has_its_task(road: Road) -> None:
    """Others leave it alone: nothing is counted, and nothing is held up behind it."""
    road.task("rare", fine)
    road.task("common", fine)
    rare = await road.enqueue("rare", "found", retry=ONCE)
    common = await road.enqueue("common", retry=ONCE)
    unable = await road.hire(knows=["common"])
    for _ in range(3):
        await unable.work()
        await road.advance(TTL)
    assert (await road.look(common)).state == "succeeded"
    seen = await road.look(rare)
    assert (seen.state, seen.attempt, seen.attempts) == ("queued", 0, ())
    assert unable.idle
    able = await road.hire(knows=["rare"])
    await able.work()
    seen = await road.look(rare)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, "found")
    assert await road.at_rest()
