"""What a task says while it works: progress for everybody, checkpoints for the next attempt."""

from typing import Any

from betimes import Context, Snooze
from conformance.bodies import FIXED, FOR_EVER, fails
from conformance.roads import LACKS, TTL, Can, Road, needs


@needs(Can.NOTES)
async def test_a_checkpoint_is_given_to_the_next_attempt(road: Road) -> None:
    """Whether it failed or snoozed; the last one counts."""

    async def steps(ctx: Context, given: Any) -> Any:
        done = ctx.checkpoint_value or 0
        ctx.checkpoint(done + 1)
        ctx.checkpoint(done + 2)
        if done == 0:
            await fails(ctx, given)
        if done == 2:
            raise Snooze(after=10)
        return done

    road.task("steps", steps)
    run = await road.enqueue("steps", retry=FIXED)
    hand = await road.hire()
    for _ in range(3):
        await hand.work()
        await road.advance(10)
    seen = await road.look(run)
    assert (seen.state, seen.result) == ("succeeded", 4)
    assert [one.checkpoint for one in road.began] == [None, 2, 4]


@needs(Can.NOTES)
async def test_a_checkpoint_outlives_its_worker(road: Road) -> None:
    """What was told before the worker died is there for the one after it."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            ctx.checkpoint({"page": 7})
            await road.spend(FOR_EVER)
        return ctx.checkpoint_value

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    await road.advance(1)
    first.kill()
    await road.advance(TTL + 1)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 2, {"page": 7})


@needs(Can.NOTES)
async def test_progress_is_shown_while_it_works_and_afterwards(road: Road) -> None:
    """In per cent; only the last word counts."""

    async def work(ctx: Context, _: Any) -> Any:
        ctx.progress(0.25)
        await road.spend(10)
        ctx.progress(0.5)
        ctx.progress(1.0, "done")

    road.task("work", work)
    run = await road.enqueue("work")
    hand = await road.hire()
    await hand.work()
    await road.advance(1)
    if Can.INTERRUPT not in LACKS[road.name]:
        assert (await road.look(run)).percent == 25
    await road.advance(9)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.percent) == ("succeeded", 100)


@needs(Can.NOTES, Can.LOSE_LEASE)
async def test_whoever_lost_the_lease_leaves_no_notes(road: Road) -> None:
    """A checkpoint that is told too late does not replace that of the worker that is at it."""

    async def work(ctx: Context, given: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(TTL + 5)
            ctx.checkpoint("stale")
        if ctx.attempt == 2:
            ctx.checkpoint("good")
            await fails(ctx, given)
        return ctx.checkpoint_value

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    first.frozen = True
    await road.advance(TTL + 1)
    second = await road.hire()
    await second.work()
    await road.advance(4)
    await first.report()
    await road.advance(6)
    await second.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 3, "good")
