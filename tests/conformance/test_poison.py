"""Workers that die: what they held is found again, and what killed them is not tried for ever."""

from typing import Any

from betimes import Context
from conformance.bodies import FIXED, FOR_EVER, fails, numbers, taking
from conformance.roads import TTL, Can, Hand, Road, needs


async def a_death(road: Road) -> Hand:
    """A worker takes what it may and is never heard of again; its leases run out."""
    hand = await road.hire()
    await hand.work()
    hand.kill()
    await road.advance(TTL + 1)
    return hand


async def test_what_a_dead_worker_held_is_given_to_another(road: Road) -> None:
    """Not before its lease is over; the lost attempt counts, and the next one is number two."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(FOR_EVER)
        return ctx.attempt

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    first.kill()
    second = await road.hire()
    await road.advance(TTL - 1)
    await second.work()
    assert await numbers(road) == [1]
    assert (await road.look(run)).state == "running"
    await road.advance(2)
    await second.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, 2)
    assert await road.at_rest()


async def test_what_kills_every_worker_is_dead_after_its_attempts(road: Road) -> None:
    """Never handed out more often than it has attempts; then among the dead letters, unexecuted."""
    road.task("poison", taking(road, FOR_EVER))
    run = await road.enqueue("poison", retry=FIXED)
    for _ in range(5):
        await a_death(road)
    await (await road.hire()).work()
    assert await numbers(road) == [1, 2, 3]
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 3, "RETRIES_EXHAUSTED")
    assert seen.error is not None
    assert seen.error[0] == "Abandoned"
    (letter,) = await road.letters()
    assert (letter.run, letter.attempts, letter.reason) == (run, 3, "RETRIES_EXHAUSTED")
    assert await road.at_rest()


@needs(Can.ATTEMPTS)
async def test_poison_leaves_its_evidence(road: Road) -> None:
    """One abandoned attempt for every worker that it has cost, and no other."""
    road.task("poison", taking(road, FOR_EVER))
    run = await road.enqueue("poison", retry={**FIXED, "max_attempts": 2})
    for _ in range(4):
        await a_death(road)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert seen.attempts == ((1, "abandoned"), (2, "abandoned"))


async def test_a_single_attempt_that_is_lost_is_the_last_one(road: Road) -> None:
    """Who may be tried once is not executed twice, also when nobody knows how far it came."""
    road.task("poison", taking(road, FOR_EVER))
    run = await road.enqueue("poison", retry={"max_attempts": 1})
    await a_death(road)
    await a_death(road)
    await (await road.hire()).work()
    assert await numbers(road) == [1]
    assert (await road.look(run)).state == "dead"


async def test_lost_and_failed_attempts_are_counted_together(road: Road) -> None:
    """Lost, failed, failed: that are three, and then it is dead."""

    async def work(ctx: Context, given: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(FOR_EVER)
        await fails(ctx, given)

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    await a_death(road)
    hand = await road.hire()
    for _ in range(4):
        await hand.work()
        await road.advance(10)
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 3, "RETRIES_EXHAUSTED")
    assert await numbers(road) == [1, 2, 3]


async def test_a_good_attempt_after_deaths_ends_it_well(road: Road) -> None:
    """The last attempt there is may still succeed."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt < 3:
            await road.spend(FOR_EVER)
        return ctx.attempt

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    await a_death(road)
    await a_death(road)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 3, 3)
    assert await road.letters() == []


@needs(Can.FREE_HANDS)
async def test_poison_takes_no_neighbour_with_it(road: Road) -> None:
    """What has cost two workers is handed out alone: runs beside it lose no attempt by it."""
    road.task("poison", taking(road, FOR_EVER))
    road.task("fine", taking(road, 5))
    await road.enqueue("poison", retry=FIXED)
    await a_death(road)
    await a_death(road)
    neighbours = [await road.enqueue("fine", retry=FIXED) for _ in range(3)]
    third = await road.hire()
    await third.take()
    third.kill()
    await road.advance(TTL + 1)
    last = await road.hire()
    await last.work()
    await road.advance(10)
    await last.work()
    results = [(await road.look(run)).result for run in neighbours]
    assert results == [1, 1, 1]
