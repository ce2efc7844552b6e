"""What does not fit into a row."""

import json
from typing import Any

from betimes import Context
from betimes.executing.returned import RESULT_BYTES_MAX
from conformance.bodies import ONCE
from conformance.roads import Can, Road, needs

LARGE = "x" * (RESULT_BYTES_MAX + 1)


async def measure(_: Context, given: Any) -> Any:
    return len(given)


async def test_a_large_payload_arrives_whole(road: Road) -> None:
    """Up to the limit of a row it lies there."""
    road.task("measure", measure)
    run = await road.enqueue("measure", "x" * 200_000, retry=ONCE)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.result) == ("succeeded", 200_000)


@needs(Can.REFERENCES)
async def test_a_payload_that_lies_elsewhere_is_fetched(road: Road) -> None:
    """A reference is followed before the task is called."""
    road.task("measure", measure)
    reference = await road.keep(json.dumps({"given": "x" * 1_000_000}).encode())
    run = await road.enqueue("measure", payload_ref=reference, retry=ONCE)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.result) == ("succeeded", 1_000_000)


async def test_a_result_up_to_the_limit_is_kept_in_the_run(road: Road) -> None:
    """The largest that fits is there in full."""

    async def full(_: Context, __: Any) -> Any:
        return "x" * (RESULT_BYTES_MAX - 2)

    road.task("full", full)
    run = await road.enqueue("full", retry=ONCE)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, len(seen.result)) == ("succeeded", RESULT_BYTES_MAX - 2)


@needs(Can.REFERENCES)
async def test_a_result_over_the_limit_is_kept_elsewhere(road: Road) -> None:
    """The run says where, and nothing of it is lost."""

    async def large(_: Context, __: Any) -> Any:
        return LARGE

    road.task("large", large)
    run = await road.enqueue("large", retry=ONCE)
    hand = await road.hire()
    await hand.work()
    seen = await road.look(run)
    assert seen.state == "succeeded"
    assert seen.result_ref is not None, f"got {seen.result}"
    assert json.loads(await road.kept(seen.result_ref)) == LARGE
    assert hand.idle
