"""Somebody wants a run ended: before it begins, while it runs, and after it is over."""

import asyncio
from typing import Any

from betimes import Context, Snooze
from conformance.bodies import FIXED, FOR_EVER, CardRefused, fails, fine, numbers, taking
from conformance.roads import TTL, Can, Road, needs

GRACE = 5
"""Seconds between being told and being interrupted."""
HEARD = TTL / 3
"""Seconds until a worker has heard of it for sure."""


async def test_what_is_cancelled_before_it_begins_never_begins(road: Road) -> None:
    """It is over at once, and says so."""
    road.task("fine", fine)
    run = await road.enqueue("fine")
    assert await road.cancel(run)
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("cancelled", 0, "RUN_CANCELLED")
    await (await road.hire()).work()
    assert road.began == []
    assert (await road.look(run)).state == "cancelled"
    assert await road.at_rest()


async def test_what_is_cancelled_between_attempts_is_not_tried_again(road: Road) -> None:
    """A run that waits for its retry waits no longer."""
    road.task("fails", fails)
    run = await road.enqueue("fails", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    assert (await road.look(run)).state == "cancelled"
    await road.advance(60)
    await hand.work()
    assert await numbers(road) == [1]
    assert await road.letters() == []
    assert await road.at_rest()


async def test_what_is_over_cannot_be_cancelled(road: Road) -> None:
    """The wish is refused, and what was reached stands."""
    road.task("fine", fine)
    run = await road.enqueue("fine", "done")
    await (await road.hire()).work()
    assert not await road.cancel(run)
    seen = await road.look(run)
    assert (seen.state, seen.result) == ("succeeded", "done")


@needs(Can.INTERRUPT)
async def test_a_task_is_told_and_may_end_by_itself(road: Road) -> None:
    """`ctx.cancelled` says so with the next heartbeat; who ends then has ended the run."""
    told: list[bool] = []

    async def polite(ctx: Context, _: Any) -> Any:
        for _step in range(100):
            await road.spend(1)
            told.append(ctx.cancelled)
            ctx.heartbeat()

    road.task("polite", polite)
    run = await road.enqueue("polite", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    await road.advance(3)
    assert await road.cancel(run)
    assert (await road.look(run)).state == "running"
    await hand.beat()
    await road.advance(1)
    await hand.work()
    assert told[-1]
    assert told.count(True) == 1
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("cancelled", 1)
    assert hand.idle
    assert await road.at_rest()


@needs(Can.INTERRUPT)
async def test_who_does_not_listen_is_interrupted_after_a_grace(road: Road) -> None:
    """A task that waits is cancelled where it waits; its run is cancelled, not failed."""
    interrupted: list[int] = []

    async def deaf(_: Context, __: Any) -> Any:
        try:
            await road.spend(FOR_EVER)
        except asyncio.CancelledError:
            interrupted.append(1)
            raise

    road.task("deaf", deaf)
    run = await road.enqueue("deaf", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await hand.beat()
    await road.advance(GRACE - 1)
    assert interrupted == []
    await road.advance(1)
    await hand.work()
    assert interrupted == [1]
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("cancelled", 1, "RUN_CANCELLED")
    await road.advance(60)
    await hand.work()
    assert await numbers(road) == [1]
    assert await road.letters() == []
    assert hand.idle
    assert await road.at_rest()


@needs(Can.INTERRUPT)
async def test_who_ends_well_although_told_has_succeeded(road: Road) -> None:
    """What was done was done: a success within the grace stands, with its result."""

    async def stubborn(ctx: Context, _: Any) -> Any:
        await road.spend(12)
        return {"told": ctx.cancelled}

    road.task("stubborn", stubborn)
    run = await road.enqueue("stubborn", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    await road.advance(9)
    assert await road.cancel(run)
    await hand.beat()
    await road.advance(3)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, {"told": True})


async def test_a_success_that_was_not_told_yet_stands(road: Road) -> None:
    """Between the wish and the next heartbeat a run may succeed."""
    road.task("work", taking(road, 5))
    run = await road.enqueue("work", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await road.advance(5)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, 1)


async def test_who_fails_while_somebody_wants_the_end_is_cancelled(road: Road) -> None:
    """A run that nobody wants any more does not wait for a retry that will never be made."""

    async def fragile(ctx: Context, given: Any) -> Any:
        await road.spend(5)
        await fails(ctx, given)

    road.task("fragile", fragile)
    run = await road.enqueue("fragile", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await road.advance(5)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("cancelled", 1, "RUN_CANCELLED")
    assert await road.letters() == []
    assert await road.at_rest()


@needs(Can.INTERRUPT)
async def test_who_fails_because_it_was_told_is_cancelled(road: Road) -> None:
    """However a task ends that was asked to end: unless it succeeded, the run is cancelled."""

    async def rude(ctx: Context, _: Any) -> Any:
        while not ctx.cancelled:
            await road.spend(1)
        raise CardRefused("was asked to end")

    road.task("rude", rude)
    run = await road.enqueue("rude", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await hand.beat()
    await road.advance(1)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("cancelled", 1, "RUN_CANCELLED")


async def test_the_last_attempt_that_fails_while_somebody_wants_the_end_is_no_dead_letter(
    road: Road,
) -> None:
    """Nobody has to look after what nobody wants."""

    async def fragile(ctx: Context, given: Any) -> Any:
        await road.spend(5)
        await fails(ctx, given)

    road.task("fragile", fragile)
    run = await road.enqueue("fragile", retry={"max_attempts": 1})
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await road.advance(5)
    await hand.work()
    assert (await road.look(run)).state == "cancelled"
    assert await road.letters() == []


async def test_a_time_limit_that_is_reached_while_somebody_wants_the_end_is_a_cancel(
    road: Road,
) -> None:
    """The wish came first."""
    road.task("slow", taking(road, 60))
    run = await road.enqueue("slow", retry=FIXED, timeout=5)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await road.advance(5)
    await hand.work()
    assert (await road.look(run)).state == "cancelled"


async def test_a_snooze_while_somebody_wants_the_end_is_a_cancel(road: Road) -> None:
    """It would only be called again to be told."""

    async def sleepy(_: Context, __: Any) -> Any:
        await road.spend(5)
        raise Snooze(after=3600)

    road.task("sleepy", sleepy)
    run = await road.enqueue("sleepy", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    assert await road.cancel(run)
    await road.advance(5)
    await hand.work()
    assert (await road.look(run)).state == "cancelled"
    assert await road.at_rest()


async def test_what_its_worker_was_lost_with_is_not_begun_again(road: Road) -> None:
    """Cancelled while a worker held it that died: the next one ends it without calling it."""
    road.task("work", taking(road, FOR_EVER))
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    assert await road.cancel(run)
    first.kill()
    await road.advance(TTL + 1)
    await (await road.hire()).work()
    assert await numbers(road) == [1]
    assert (await road.look(run)).state == "cancelled"
    assert await road.letters() == []
    assert await road.at_rest()
