"""How an attempt may end, and what becomes of its run."""

from typing import Any

import pytest

from betimes import Context, PermanentError, Snooze
from betimes.domain.failure import fingerprint
from betimes.executing.returned import failure_of
from betimes.sdk.context import Facts
from conformance.bodies import FIXED, ONCE, CardRefused, fails, fine
from conformance.roads import Can, Letter, Road, needs


async def test_a_success_keeps_its_result(road: Road) -> None:
    """A task that returns has succeeded, at the first attempt, with what it returned."""

    async def double(_: Context, given: Any) -> Any:
        return {"twice": 2 * given}

    road.task("double", double)
    run = await road.enqueue("double", 21)
    hand = await road.hire()
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, {"twice": 42})
    assert (seen.error, seen.attempts) == (None, ())
    assert hand.idle
    assert await road.at_rest()


async def test_a_task_that_returns_nothing_has_succeeded(road: Road) -> None:
    """No result is a result like any other."""
    road.task("fine", fine)
    run = await road.enqueue("fine")
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, None)


async def test_a_failure_waits_for_its_retry(road: Road) -> None:
    """A task that raises has failed: the run waits, and says why."""
    road.task("fails", fails)
    run = await road.enqueue("fails", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("retry_wait", 1, "RETRY_BACKOFF")
    assert seen.error == ("CardRefused", "card 41 refused")
    assert hand.idle


async def test_what_cannot_work_is_dead_at_once(road: Road) -> None:
    """`PermanentError` leaves no attempt to be made, however many there are."""

    async def never(_: Context, __: Any) -> Any:
        raise PermanentError("card refused")

    road.task("never", never)
    run = await road.enqueue("never", retry=FIXED)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 1, "PERMANENT_ERROR")
    assert seen.error == ("PermanentError", "card refused")
    assert [(one.run, one.attempts) for one in await road.letters()] == [(run, 1)]
    assert await road.at_rest()


@pytest.mark.parametrize(
    "policy", [{"give_up_on": ["CardRefused"]}, {"retry_on": ["KeyError"]}], ids=["give_up", "only"]
)
async def test_a_policy_may_give_up_on_types_of_errors(road: Road, policy: Any) -> None:
    """What is in `give_up_on`, or not in `retry_on`, is final."""
    road.task("fails", fails)
    run = await road.enqueue("fails", retry={**FIXED, **policy})
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 1, "PERMANENT_ERROR")


async def test_what_cannot_be_written_down_is_dead_at_once(road: Road) -> None:
    """A result that is no JSON would be none the next time either."""

    async def odd(_: Context, __: Any) -> Any:
        return {"value": object()}

    road.task("odd", odd)
    run = await road.enqueue("odd", retry=FIXED)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 1, "PERMANENT_ERROR")
    assert seen.error is not None
    assert seen.result is None


async def test_a_snooze_costs_no_attempt_and_lasts_as_long_as_was_asked(road: Road) -> None:
    """Called again when the time has come, as the same attempt; nothing has failed."""

    async def sleepy(_: Context, __: Any) -> Any:
        if len(road.began) <= 2:
            raise Snooze(after=60)
        return "awake"

    road.task("sleepy", sleepy)
    run = await road.enqueue("sleepy", retry=ONCE)
    hand = await road.hire()
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.reason, seen.error) == ("retry_wait", "SNOOZED", None)
    assert seen.attempt == 0
    await road.advance(59)
    await hand.work()
    assert len(road.began) == 1
    await road.advance(1)
    await hand.work()
    await road.advance(60)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 1, "awake")
    assert [one.attempt for one in road.began] == [1, 1, 1]
    assert [one.fence for one in road.began] == [1, 2, 3]
    assert seen.attempts == ()


async def test_a_task_may_end_its_run_as_cancelled(road: Road) -> None:
    """`ctx.stop` ends the run with the words of the task, and no attempt is left to be made."""

    async def stops(ctx: Context, _: Any) -> Any:
        ctx.stop("enough")

    road.task("stops", stops)
    run = await road.enqueue("stops", retry=FIXED)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("cancelled", 1, "enough")
    assert seen.error is None
    assert await road.letters() == []
    assert await road.at_rest()


async def test_failures_of_one_kind_have_one_fingerprint_on_every_road(road: Road) -> None:
    """Type, message without numbers and innermost frame: the same whoever executes."""
    road.task("fails", fails)
    first = await road.enqueue("fails", retry=ONCE)
    second = await road.enqueue("fails", retry={**FIXED, "max_attempts": 2, "initial": 0})
    hand = await road.hire()
    await hand.work()
    await road.advance(1)
    await hand.work()
    with pytest.raises(CardRefused) as raised:
        await fails(Context(Facts(run_id="run", handler="fails")), None)
    expected = fingerprint(failure_of(raised.value).error)
    assert sorted(await road.letters(), key=lambda one: one.attempts) == [
        Letter(first, 1, "RETRIES_EXHAUSTED", expected),
        Letter(second, 2, "RETRIES_EXHAUSTED", expected),
    ]


@needs(Can.ATTEMPTS)
async def test_every_attempt_that_failed_is_kept(road: Road) -> None:
    """By number and outcome, beside the run that tells of the last one."""

    async def various(ctx: Context, given: Any) -> Any:
        if ctx.attempt == 2:
            await road.spend(60)
        await fails(ctx, given)

    road.task("various", various)
    run = await road.enqueue("various", retry=FIXED, timeout=30)
    hand = await road.hire()
    await hand.work()
    for seconds in (10, 30, 10):
        await road.advance(seconds)
        await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("dead", 3)
    assert seen.attempts == ((1, "failed"), (2, "timed_out"), (3, "failed"))
