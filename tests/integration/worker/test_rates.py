"""Rates by key: so many starts in a time; what does not start uses no token."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.states import RunState
from betimes.domain.terms import Terms
from betimes.store.database import Database
from betimes.store.repair import FIRST_GATE, Repairing
from betimes.testing import ManualClock
from integration.worker.test_ceilings import SLEEP, agree, pass_time, tokens
from worker_kit import TENANT, a_worker, enqueue, parcels, rows, state_of

RATE = Terms(rate="stripe")


async def say(database: Database, limit: int, *, key: str = "stripe") -> None:
    """So many in a second."""
    await rows(
        database,
        "INSERT INTO betimes.limits (tenant_id, kind, key, rate_limit, rate_per_ms)"
        " VALUES ($1, 'rate', $2, $3, 1000)"
        " ON CONFLICT (tenant_id, kind, key) DO UPDATE SET rate_limit = excluded.rate_limit",
        TENANT,
        key,
        limit,
    )


async def offer(database: Database, clock: ManualClock) -> int:
    """What the janitor does four times a second."""
    offered, _ = await Repairing(database).rates(FIRST_GATE, now=clock.now())
    return len(offered)


async def succeeded(database: Database) -> int:
    found = await rows(database, "SELECT FROM betimes.runs WHERE state = 4")
    return len(found)


async def test_no_second_sees_more_than_the_rate_and_all_is_done_in_the_end(
    database: Database, clock: ManualClock
) -> None:
    await say(database, 2)
    runs = await enqueue(database, clock.now(), ["noop"] * 9, terms=RATE)
    async with (
        a_worker(database, clock, number=1) as one,
        a_worker(database, clock, number=2) as two,
    ):
        for second in range(5):
            for worker in (one, two, one, two):
                await offer(database, clock)
                await worker.poll_once()
            assert await succeeded(database) == min(9, 2 + 2 * second)
            await pass_time(one, clock, 1.0)
    assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}
    assert await parcels(database) == []


async def test_what_waits_for_its_rate_is_in_nobodys_way(
    database: Database, clock: ManualClock
) -> None:
    """It is looked at once, costs no delivery, and then lies outside of the queue."""
    await say(database, 1)
    await enqueue(database, clock.now(), ["noop"] * 5, terms=RATE)
    other = await enqueue(database, clock.now() + timedelta(milliseconds=1), ["noop"])
    clock.advance(0.001)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await state_of(database, other[0]) is RunState.SUCCEEDED
        held = await parcels(database)
        assert [(one["held"], one["deliveries"]) for one in held] == [(4, 0)] * 4
        assert await worker.poll_once() == 0
        assert await offer(database, clock) == 0, "there is no token yet"


async def test_the_rate_of_a_queue_counts_for_keys_about_which_nothing_was_said(
    database: Database, clock: ManualClock
) -> None:
    await agree(database, key_rate_limit=3, key_rate_per_ms=1_000)
    await say(database, 1, key="said")
    for key in ("said", "unsaid"):
        await enqueue(database, clock.now(), ["noop"] * 5, terms=Terms(rate=key))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    found = await rows(
        database,
        "SELECT rate_key, count(*) AS n FROM betimes.runs WHERE state = 4 GROUP BY rate_key",
    )
    assert {row["rate_key"]: row["n"] for row in found} == {"said": 1, "unsaid": 3}


async def test_a_key_without_a_rate_stops_nobody(database: Database, clock: ManualClock) -> None:
    await enqueue(database, clock.now(), ["noop"] * 5, terms=RATE)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert await succeeded(database) == 5


async def test_a_change_of_the_rate_bites_for_what_waits(
    database: Database, clock: ManualClock
) -> None:
    await say(database, 1)
    await enqueue(database, clock.now(), ["noop"] * 9, terms=RATE)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await say(database, 5)
        clock.advance(1.0)
        assert await offer(database, clock) == 5
        await worker.poll_once()
        assert await succeeded(database) == 6
        await rows(database, "UPDATE betimes.limits SET rate_limit = NULL WHERE kind = 'rate'")
        assert await offer(database, clock) == 3
        await worker.poll_once()
        assert await succeeded(database) == 9


@pytest.mark.parametrize(
    ("handler", "columns"),
    [("nobody has this", {}), ("noop", {"options": {"start_deadline_ms": 1}, "ago": 5})],
    ids=["unable", "too late"],
)
async def test_what_does_not_start_uses_no_token_of_its_key(
    database: Database, clock: ManualClock, handler: str, columns: dict[str, Any]
) -> None:
    await say(database, 5)
    await enqueue(database, clock.now(), ["noop"], terms=RATE)
    due = clock.now() - timedelta(seconds=columns.pop("ago", 0))
    await enqueue(database, due, [handler] * 3, terms=RATE, **columns)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert await succeeded(database) == 1
    assert await tokens(database, "rate") == pytest.approx(4)


async def test_who_is_held_at_a_gate_uses_no_token_and_who_has_none_no_place(
    database: Database, clock: ManualClock
) -> None:
    await say(database, 2)
    both = Terms(gate="k", rate="stripe")
    await enqueue(database, clock.now(), ["sleep"] * 3, payload=SLEEP, terms=both)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await tokens(database, "rate") == pytest.approx(1)
        held = sorted(one["held"] for one in await parcels(database))
        assert held == [0, 1, 1], "one runs, two wait for the gate"
    await rows(database, "DELETE FROM betimes.parcels")
    await rows(database, "UPDATE betimes.limits SET tokens = 0 WHERE kind = 'rate'")
    await enqueue(database, clock.now(), ["noop"], terms=both)
    await enqueue(database, clock.now(), ["noop"], terms=Terms(gate="k"))
    async with a_worker(database, clock, number=2) as worker:
        await worker.poll_once()
    assert await succeeded(database) == 1, "the place was free for who needs no token"
    assert [one["held"] for one in await parcels(database)] == [4]


async def test_a_drain_gives_tokens_of_keys_back(database: Database, clock: ManualClock) -> None:
    from betimes.worker.drain import _give_back  # noqa: PLC0415 -- what a drain does at its end

    await say(database, 5)
    await enqueue(database, clock.now(), ["sleep"] * 3, payload=SLEEP, terms=RATE)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await tokens(database, "rate") == pytest.approx(2)
        assert await _give_back(worker.parts.holds, worker.parts.held) == 3
        assert await tokens(database, "rate") == pytest.approx(5)
