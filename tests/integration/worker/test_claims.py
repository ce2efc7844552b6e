"""Whoever needs two things at once gets both, however many want one of them."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.states import RunState
from betimes.domain.terms import Terms
from betimes.store.database import Database
from betimes.store.repair import FIRST_GATE, FIRST_LINE, Repairing
from betimes.testing import ManualClock
from integration.worker.test_ceilings import agree, pass_time
from integration.worker.test_gates import allow
from integration.worker.test_rates import say
from worker_kit import Bench, a_worker, enqueue, rows, state_of

STEP = 0.5
STEPS_MAX = 40
SECOND = b'{"seconds": 1}'


async def serve(database: Database, clock: ManualClock, *queues: str) -> None:
    """Say that somebody comes to some queues."""
    await rows(database, "DELETE FROM betimes.workers")
    await rows(
        database,
        "INSERT INTO betimes.workers (id, name, queues, slots, started_at, heartbeat_at)"
        " VALUES (gen_random_uuid(), 'w', $1, 10, $2, $2)",
        list(queues),
        clock.now() + timedelta(hours=1),
    )


async def look_after(database: Database, clock: ManualClock) -> None:
    repairing = Repairing(database)
    await repairing.rates(FIRST_GATE, now=clock.now())
    await repairing.gates(FIRST_GATE, now=clock.now())
    await repairing.lines(FIRST_LINE, now=clock.now())


async def crowd(
    database: Database, clock: ManualClock, worker: Bench, patient: Any, *others: Any
) -> int:
    """In each step more of the others come than there is room for; when the patient one is over."""
    for step in range(STEPS_MAX):
        for more in others:
            await enqueue(database, clock.now(), ["sleep"] * 3, payload=SECOND, **more)
        await worker.poll_once()
        await pass_time(worker, clock, STEP)
        await look_after(database, clock)
        if await state_of(database, patient) is RunState.SUCCEEDED:
            return step
    return STEPS_MAX


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "without"])
async def test_a_gate_and_a_token_that_others_want_one_by_one(
    database: Database, clock: ManualClock, kept: bool
) -> None:
    """The gate is free at whole seconds and the token comes at half ones.

    Without a worker that was seen there are no claims: then the one that needs both waits forever.
    """
    await serve(database, clock, *(["*"] if kept else []))
    await allow(database, clock, k=1)
    await say(database, 1)
    gate: dict[str, Any] = {"terms": Terms(gate="k")}
    rate: dict[str, Any] = {"terms": Terms(rate="stripe")}
    await enqueue(database, clock.now(), ["sleep"] * 3, payload=SECOND, **gate)
    clock.advance(0.01)
    both = Terms(gate="k", rate="stripe")
    (patient,) = await enqueue(database, clock.now(), ["noop"], terms=both)
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await pass_time(worker, clock, STEP)
        steps = await crowd(database, clock, worker, patient, gate, rate)
    assert (steps < STEPS_MAX) is kept


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "without"])
async def test_a_gate_beside_a_queue_that_is_slow_by_its_own_rate(
    database: Database, clock: ManualClock, kept: bool
) -> None:
    await serve(database, clock, *(["*"] if kept else []))
    await agree(database, rate_limit=1, rate_per_ms=1_000)
    await allow(database, clock, k=1)
    gate: dict[str, Any] = {"terms": Terms(gate="k"), "queue": "other"}
    slow: dict[str, Any] = {}
    await enqueue(database, clock.now(), ["sleep"] * 3, payload=SECOND, **gate)
    clock.advance(0.01)
    (patient,) = await enqueue(database, clock.now(), ["noop"], terms=Terms(gate="k"))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await pass_time(worker, clock, STEP)
        steps = await crowd(database, clock, worker, patient, gate, slow)
    assert (steps < STEPS_MAX) is kept


@pytest.mark.parametrize(
    ("queues", "paused"), [(["other"], False), (["*"], True)], ids=["unserved", "paused"]
)
async def test_nothing_is_kept_for_a_queue_to_which_nobody_comes(
    database: Database, clock: ManualClock, queues: list[str], paused: bool
) -> None:
    await serve(database, clock, *queues)
    await agree(database, paused_at=clock.now() if paused else None)
    await allow(database, clock, k=1)
    await say(database, 1)
    both = Terms(gate="k", rate="stripe")
    await enqueue(database, clock.now(), ["noop"] * 2, terms=both)
    await rows(
        database,
        "UPDATE betimes.parcels SET held = 4, held_at = $1 WHERE rate_key IS NOT NULL",
        clock.now(),
    )
    clock.advance(0.01)
    (other,) = await enqueue(database, clock.now(), ["noop"], terms=both, queue="other")
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await pass_time(worker, clock, 0.1)
    assert await state_of(database, other) is RunState.SUCCEEDED


async def test_newcomers_stand_behind_those_who_wait_for_a_token(
    database: Database, clock: ManualClock
) -> None:
    await serve(database, clock, "*")
    await say(database, 1)
    early = await enqueue(database, clock.now(), ["noop"] * 3, terms=Terms(rate="stripe"))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await pass_time(worker, clock, 1.0)
        late = await enqueue(database, clock.now(), ["noop"], terms=Terms(rate="stripe"))
        await worker.poll_once()
        await pass_time(worker, clock, 0.1)
        assert await state_of(database, late[0]) is not RunState.SUCCEEDED
        for _ in range(4):
            await look_after(database, clock)
            await worker.poll_once()
            await pass_time(worker, clock, 1.0)
    for run in (*early, *late):
        assert await state_of(database, run) is RunState.SUCCEEDED


async def test_who_waits_for_a_token_behind_a_gate_that_is_full_waits_for_the_gate(
    database: Database, clock: ManualClock
) -> None:
    await allow(database, clock, k=1)
    await say(database, 1)
    await enqueue(database, clock.now(), ["sleep"], payload=SECOND, terms=Terms(gate="k"))
    async with a_worker(database, clock) as worker:
        await worker.poll_once()
        await enqueue(database, clock.now(), ["noop"], terms=Terms(gate="k", rate="stripe"))
        await rows(
            database,
            "UPDATE betimes.parcels SET held = 4, held_at = $1 WHERE rate_key IS NOT NULL",
            clock.now(),
        )
        await look_after(database, clock)
        found = await rows(database, "SELECT held FROM betimes.parcels WHERE rate_key IS NOT NULL")
        assert [row["held"] for row in found] == [1]
