"""When it is tried again, how attempts are numbered, and when it is enough."""

from itertools import pairwise
from typing import Any

import pytest

from betimes import Context, Retry
from conformance.bodies import FIXED, failing, fails, numbers
from conformance.roads import Road


async def test_attempts_are_numbered_and_none_comes_too_soon(road: Road) -> None:
    """One attempt after each pause of the policy, numbered from one."""
    road.task("flaky", failing(2))
    run = await road.enqueue("flaky", retry=FIXED)
    hand = await road.hire()
    await hand.work()
    begun_at = road.began[0].at
    for _ in range(2):
        await road.advance(9.5)
        await hand.work()
        assert (await road.look(run)).state == "retry_wait"
        await road.advance(0.5)
        await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.result) == ("succeeded", 3, 3)
    assert seen.error is None
    waits = [(one.at - begun_at).total_seconds() for one in road.began]
    assert (await numbers(road), waits) == ([1, 2, 3], [0, 10, 20])
    assert [one.fence for one in road.began] == [1, 2, 3]


@pytest.mark.parametrize(
    ("policy", "pauses"),
    [
        ({"backoff": "exponential", "initial": 10, "factor": 3, "max": 60}, [10, 30, 60]),
        ({"backoff": "linear", "initial": 10}, [10, 20, 30]),
        ({"backoff": "list", "delays": [5, 15]}, [5, 15, 15]),
    ],
    ids=["exponential", "linear", "list"],
)
async def test_pauses_grow_as_the_policy_says(road: Road, policy: Any, pauses: list[int]) -> None:
    """Whatever the way to back off, the pause is counted from the end of the attempt."""
    road.task("flaky", failing(3))
    run = await road.enqueue("flaky", retry={"max_attempts": 4, "jitter": "none", **policy})
    hand = await road.hire()
    await hand.work()
    for pause in pauses:
        await road.advance(pause)
        await hand.work()
    assert (await road.look(run)).state == "succeeded"
    times = [one.at for one in road.began]
    found = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert found == pauses


async def test_after_the_last_attempt_a_run_is_dead(road: Road) -> None:
    """Never more attempts than the policy allows; then it lies among the dead letters, once."""
    road.task("fails", fails)
    run = await road.enqueue("fails", retry=FIXED)
    hand = await road.hire()
    for _ in range(6):
        await hand.work()
        await road.advance(10)
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 3, "RETRIES_EXHAUSTED")
    assert seen.error == ("CardRefused", "card 43 refused")
    assert await numbers(road) == [1, 2, 3]
    (letter,) = await road.letters()
    assert (letter.run, letter.attempts, letter.reason) == (run, 3, "RETRIES_EXHAUSTED")
    assert await road.at_rest()


async def test_a_wish_lengthens_a_pause_up_to_the_policys_maximum(road: Road) -> None:
    """`Retry(after=…)` counts as a failure; it can make the pause longer, never shorter."""
    wishes = [25, 1, 500]

    async def wishing(ctx: Context, _: Any) -> Any:
        if ctx.attempt <= len(wishes):
            raise Retry("not yet", after=wishes[ctx.attempt - 1])
        return "done"

    road.task("wishing", wishing)
    run = await road.enqueue("wishing", retry={**FIXED, "max_attempts": 4, "max": 100})
    hand = await road.hire()
    await hand.work()
    for pause in (25, 10, 100):
        await road.advance(pause - 1)
        await hand.work()
        assert (await road.look(run)).state == "retry_wait"
        await road.advance(1)
        await hand.work()
    assert (await road.look(run)).state == "succeeded"
    assert await numbers(road) == [1, 2, 3, 4]


async def test_no_retry_begins_after_all_the_time_that_may_pass(road: Road) -> None:
    """`max_elapsed` counts from the first start; what would begin later is dead now."""
    road.task("fails", fails)
    run = await road.enqueue("fails", retry={**FIXED, "max_attempts": 9, "max_elapsed": 25})
    hand = await road.hire()
    for _ in range(3):
        await hand.work()
        await road.advance(10)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("dead", 3, "RETRIES_EXHAUSTED")
