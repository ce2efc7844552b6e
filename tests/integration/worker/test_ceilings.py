"""Ceilings and rates of tenants and queues hold over lease intervals, and leak nothing."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.states import RunState
from betimes.domain.terms import SKIP, Terms
from betimes.store.database import Database
from betimes.testing import ManualClock
from worker_kit import (
    QUEUE,
    TENANT,
    Bench,
    a_worker,
    enqueue,
    parcels,
    rows,
    settle_down,
    state_of,
)

SLEEP = b'{"seconds": 5}'


async def agree(database: Database, *, quotas: str = "{}", **columns: Any) -> None:
    """What the tenant and its queue have agreed upon."""
    await rows(
        database,
        "INSERT INTO betimes.tenants (id, slug, name, quotas)"
        " VALUES ($1, 'a', 'A', $2::text::jsonb)"
        " ON CONFLICT (id) DO UPDATE SET quotas = excluded.quotas",
        TENANT,
        quotas,
    )
    names = "".join(f", {name}" for name in columns)
    places = "".join(f", ${number}" for number in range(3, 3 + len(columns)))
    updates = "".join(f", {name} = excluded.{name}" for name in columns)
    await rows(
        database,
        f"INSERT INTO betimes.queues (tenant_id, name{names}) VALUES ($1, $2{places})"
        f" ON CONFLICT (tenant_id, name) DO UPDATE SET revision = 2{updates}",
        TENANT,
        QUEUE,
        *columns.values(),
    )


async def sleepers(database: Database, clock: ManualClock, count: int, **more: Any) -> list[Any]:
    return await enqueue(database, clock.now(), ["sleep"] * count, payload=SLEEP, **more)


async def pass_time(worker: Bench, clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    await settle_down()
    await worker.parts.reporter.flush()
    while await worker.once():
        pass


async def in_flight(database: Database) -> int:
    found = await rows(
        database,
        "SELECT coalesce(sum(cardinality(run_ids)), 0) AS n FROM betimes.parcels"
        " WHERE worker_id IS NOT NULL",
    )
    return int(found[0]["n"])


async def tokens(database: Database, kind: str) -> float:
    found = await rows(database, "SELECT tokens FROM betimes.limits WHERE kind = $1", kind)
    return float(found[0]["tokens"])


@pytest.mark.parametrize(
    "agreed", [{"max_concurrency": 3}, {"quotas": '{"max_in_flight": 3}'}], ids=["queue", "tenant"]
)
async def test_a_ceiling_holds_over_two_workers_and_all_is_done_in_the_end(
    database: Database, clock: ManualClock, agreed: dict[str, Any]
) -> None:
    await agree(database, **agreed)
    runs = await sleepers(database, clock, 8)
    async with (
        a_worker(database, clock, number=1) as one,
        a_worker(database, clock, number=2) as two,
    ):
        for _ in range(4):
            await one.poll_once()
            await two.poll_once()
            assert await in_flight(database) <= 3
            await pass_time(one, clock, 5)
            await pass_time(two, clock, 0.2)
            assert await in_flight(database) <= 3
    assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


async def test_a_run_that_lasts_does_not_keep_the_places_of_its_neighbours(
    database: Database, clock: ManualClock
) -> None:
    """A parcel that is partly done counts only for what is left of it."""
    await agree(database, max_concurrency=4)
    due = clock.now()
    await enqueue(database, due, ["sleep", "noop", "noop", "noop"], payload=SLEEP)
    await enqueue(database, due, ["noop"] * 3, payload=SLEEP)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 1
        await pass_time(worker, clock, 0.2)
        (left,) = await parcels(database)
        assert len(left["run_ids"]) == 1


async def test_a_rate_lets_through_what_it_says(database: Database, clock: ManualClock) -> None:
    await agree(database, rate_limit=120, rate_per_ms=60_000)
    runs = await enqueue(database, clock.now(), ["noop"] * 10)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        for second in range(1, 6):
            ended = await rows(database, "SELECT FROM betimes.runs WHERE state = 4")
            assert len(ended) == 2 * second
            # Told by the ledger when the next token comes, the worker looks then, without a poll.
            await pass_time(worker, clock, 0.501)
            await pass_time(worker, clock, 0.501)
    assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


async def test_a_tenant_has_a_rate_per_minute(database: Database, clock: ManualClock) -> None:
    await agree(database, quotas='{"runs_per_minute": 180}')
    await enqueue(database, clock.now(), ["noop"] * 10)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert len(await rows(database, "SELECT FROM betimes.runs WHERE state = 4")) == 3


async def test_what_nobody_wants_uses_no_token(database: Database, clock: ManualClock) -> None:
    await agree(database, rate_limit=5, rate_per_ms=1_000)
    runs = await enqueue(database, clock.now(), ["noop"] * 3)
    end = "UPDATE betimes.runs SET state = 6, finished_at = now() WHERE id = ANY ($1::uuid[])"
    await rows(database, end, runs[:2])
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert await tokens(database, "queue") == pytest.approx(4)


async def test_what_is_held_at_a_gate_uses_no_token(database: Database, clock: ManualClock) -> None:
    await agree(database, rate_limit=5, rate_per_ms=1_000)
    await sleepers(database, clock, 3, terms=Terms(gate="k"))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert await tokens(database, "queue") == pytest.approx(4)


@pytest.mark.parametrize(
    ("handler", "columns"),
    [
        ("nobody has this", {}),
        ("noop", {"cancel_at": "now"}),
        ("noop", {"options": {"start_deadline_ms": 1}, "ago": 5}),
    ],
    ids=["unable", "cancelled", "too late"],
)
async def test_what_does_not_start_uses_no_token(
    database: Database, clock: ManualClock, handler: str, columns: dict[str, Any]
) -> None:
    """Whatever the reason: its end gives back what its lease had taken."""
    await agree(database, quotas='{"runs_per_minute": 300}', rate_limit=5, rate_per_ms=1_000)
    due = clock.now() - timedelta(seconds=columns.pop("ago", 0))
    if "cancel_at" in columns:
        columns["cancel_at"] = clock.now()
    await enqueue(database, due, [handler, "noop"], **columns)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    left = 4 if handler != "noop" else 5
    for kind in ("queue", "tenant"):
        assert await tokens(database, kind) == pytest.approx(left), kind


async def test_what_would_rather_not_run_than_wait_uses_no_token(
    database: Database, clock: ManualClock
) -> None:
    await agree(database, rate_limit=5, rate_per_ms=1_000)
    await sleepers(database, clock, 3, terms=Terms(gate="k", when_full=SKIP))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await tokens(database, "queue") == pytest.approx(4)


async def test_a_drain_gives_tokens_back(database: Database, clock: ManualClock) -> None:
    from betimes.worker.drain import _give_back  # noqa: PLC0415 -- what a drain does at its end

    await agree(database, rate_limit=5, rate_per_ms=1_000)
    await sleepers(database, clock, 3)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await tokens(database, "queue") == pytest.approx(2)
        assert await _give_back(worker.parts.holds, worker.parts.held) == 1
        assert await tokens(database, "queue") == pytest.approx(5)


async def test_a_change_bites_without_a_restart(database: Database, clock: ManualClock) -> None:
    await agree(database, max_concurrency=1)
    await sleepers(database, clock, 12)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        assert await in_flight(database) == 1
        await agree(database, max_concurrency=4)
        await pass_time(worker, clock, 0.2)
        assert await in_flight(database) == 4
        await agree(database, max_concurrency=2)
        await pass_time(worker, clock, 5)
        assert await in_flight(database) <= 2
        await agree(database, max_concurrency=0)
        await pass_time(worker, clock, 5)
        assert await in_flight(database) == 0, "a ceiling of nothing lets nobody in"
        assert len(await parcels(database)) > 0


async def test_without_rules_nothing_is_locked(database: Database, clock: ManualClock) -> None:
    await enqueue(database, clock.now(), ["noop"] * 3)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
    assert await rows(database, "SELECT FROM betimes.limits") == []
