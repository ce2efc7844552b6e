"""Lease, execute, finish: every outcome of an attempt, on a real database."""

import json
from datetime import timedelta
from typing import Any

from betimes.domain.failure import fingerprint
from betimes.domain.ids import compose, to_ms
from betimes.domain.outcome import ErrorFacts, Failed, OutcomeKind
from betimes.domain.parcel import Lane
from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from worker_kit import (
    MINUTE,
    SECOND,
    SHARD,
    TENANT,
    a_worker,
    enqueue,
    parcels,
    read_run,
    rows,
    settle_down,
    state_of,
)


def error_of(row: Any) -> ErrorFacts:
    return ErrorFacts(**json.loads(row["error"]))


async def test_runs_are_leased_executed_and_finished(
    database: Database, clock: ManualClock
) -> None:
    """The straight line from a parcel to final rows; the parcel is gone afterwards."""
    runs = await enqueue(database, clock.now(), ["noop", "echo", "noop"], payload=b"hello")
    async with a_worker(database, clock) as bench:
        assert await bench.once() == 3
        assert await bench.once() == 0
    assert [await state_of(database, run) for run in runs] == [RunState.SUCCEEDED] * 3
    assert await parcels(database) == []
    row = await read_run(database, runs[1])
    assert (row["attempt"], row["fence"], row["result"]) == (1, 1, b"hello")
    assert row["started_at"] == row["finished_at"] == row["first_started_at"] == clock.now()
    assert bench.counted("betimes_runs_total", outcome="succeeded") == 3
    assert not len(bench.parts.held)
    assert bench.parts.slots.idle


async def test_a_failure_is_retried_and_then_succeeds(
    database: Database, clock: ManualClock
) -> None:
    """The attempt counts, the retry waits in a parcel of its own whose fence goes on rising."""
    handlers = Handlers()

    async def flaky(context: Context) -> str:
        if context.attempt == 1:
            raise ConnectionError("not yet")
        return "ok"

    handlers.add("flaky", flaky)
    (run,) = await enqueue(database, clock.now(), ["flaky"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        row = await read_run(database, run)
        assert (row["state"], row["attempt"], row["reason"]) == (3, 1, "RETRY_BACKOFF")
        assert json.loads(row["error"])["type"] == "ConnectionError"
        (parcel,) = await parcels(database)
        assert (parcel["lane"], parcel["fence"], parcel["worker_id"]) == (Lane.RETRY, 1, None)
        # The first pause is 5 s, full jitter, and the die shows the middle.
        assert parcel["visible_at"] == clock.now() + timedelta(seconds=2.5)
        clock.advance(timedelta(seconds=2.4))
        assert await bench.once() == 0
        clock.advance(timedelta(seconds=0.1))
        assert await bench.poll_once() == 1
    row = await read_run(database, run)
    assert (row["state"], row["attempt"], row["fence"], row["result"]) == (4, 2, 2, b'"ok"')
    assert row["error"] is None
    (attempt,) = await rows(database, "SELECT * FROM betimes.attempts")
    assert (attempt["number"], attempt["outcome"]) == (1, OutcomeKind.FAILED)
    assert attempt["next_retry_at"] == parcel["visible_at"]
    assert bench.counted("betimes_attempt_failures_total", **{"class": "failed"}) == 1
    assert bench.counted("betimes_retries_total") == 1


async def test_a_run_out_of_attempts_becomes_a_dead_letter_with_its_history(
    database: Database, clock: ManualClock
) -> None:
    """Each attempt is remembered; the letter carries fingerprint, reason and error."""
    options = {"retry": {"max_attempts": 3, "jitter": "none", "initial_ms": 1000}}
    (run,) = await enqueue(database, clock.now(), ["fail"], payload=b"boom 17", options=options)
    async with a_worker(database, clock) as bench:
        for _ in range(3):
            await bench.poll_once()
            clock.advance(MINUTE)
        assert await bench.poll_once() == 0
    assert await state_of(database, run) is RunState.DEAD
    assert await parcels(database) == []
    tried = await rows(database, "SELECT * FROM betimes.attempts ORDER BY number")
    assert [one["number"] for one in tried] == [1, 2, 3]
    assert [one["fence"] for one in tried] == [1, 2, 3]
    (letter,) = await rows(database, "SELECT * FROM betimes.dead_letters")
    assert (letter["run_id"], letter["attempts"]) == (run, 3)
    assert (letter["reason"], letter["handler"]) == ("RETRIES_EXHAUSTED", "fail")
    assert letter["fingerprint"] == fingerprint(error_of(letter))
    assert json.loads(letter["error"])["message"] == "boom 17"


async def test_a_permanent_failure_is_not_retried(database: Database, clock: ManualClock) -> None:
    handlers = Handlers()

    async def refuse(_: Context) -> Failed:
        return Failed(ErrorFacts("Gone", "410"), retryable=False)

    handlers.add("refuse", refuse)
    (run,) = await enqueue(database, clock.now(), ["refuse"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
    row = await read_run(database, run)
    assert (row["state"], row["reason"]) == (RunState.DEAD, "PERMANENT_ERROR")


async def test_a_snooze_uses_up_no_attempt(database: Database, clock: ManualClock) -> None:
    (run,) = await enqueue(database, clock.now(), ["snooze"])
    async with a_worker(database, clock) as bench:
        await bench.once()
        row = await read_run(database, run)
        assert (row["state"], row["attempt"], row["reason"]) == (3, 0, "SNOOZED")
        clock.advance(SECOND)
        await bench.poll_once()
    row = await read_run(database, run)
    assert (row["state"], row["attempt"]) == (RunState.SUCCEEDED, 1)
    assert await rows(database, "SELECT * FROM betimes.attempts") == []


async def test_an_unknown_handler_costs_no_attempt(database: Database, clock: ManualClock) -> None:
    (run,) = await enqueue(database, clock.now(), ["nobody knows"])
    async with a_worker(database, clock) as bench:
        await bench.once()
    row = await read_run(database, run)
    assert (row["state"], row["attempt"]) == (RunState.QUEUED, 0), "nothing was tried"
    assert (row["error"], row["reason"]) == (None, "NO_WORKER_FOR_HANDLER")


async def test_what_another_worker_can_do_hides_for_a_moment_only(
    database: Database, clock: ManualClock
) -> None:
    """However often it was handed out; what nobody has the handler for stays out of the way."""
    for handler in ("theirs", "nobody's"):
        await enqueue(database, clock.now(), [handler])
    await rows(database, "UPDATE betimes.parcels SET fence = 12")
    await rows(
        database,
        "WITH tenant AS (INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A'))"
        " INSERT INTO betimes.workers"
        " (id, tenant_id, name, queues, handlers, slots, started_at, heartbeat_at)"
        " VALUES (gen_random_uuid(), $1, 'w', '{default}', '{theirs}', 1, $2, $2)",
        TENANT,
        clock.now(),
    )
    async with a_worker(database, clock) as bench:
        await bench.once()
    hidden = await rows(
        database,
        "SELECT run.handler, parcel.visible_at FROM betimes.parcels AS parcel"
        " JOIN betimes.runs AS run ON run.id = ANY (parcel.run_ids)",
    )
    times = {row["handler"]: row["visible_at"] - clock.now() for row in hidden}
    assert times["theirs"] < SECOND
    assert times["nobody's"] > 20 * SECOND


async def test_what_nobody_wants_any_more_is_not_executed(
    database: Database, clock: ManualClock
) -> None:
    """Cancelled, too late, and already final runs; only the fourth is executed."""
    due, deadline = clock.now(), {"start_deadline_ms": 1000}
    (cancelled,) = await enqueue(database, due, ["noop"], cancel_at=due)
    (late,) = await enqueue(database, due, ["noop"], options=deadline)
    (final,) = await enqueue(database, due, ["noop"])
    await rows(
        database,
        "UPDATE betimes.runs SET state = 7, finished_at = $2 WHERE id = $1 RETURNING id",
        final,
        due,
    )
    clock.advance(timedelta(seconds=2))
    (good,) = await enqueue(database, clock.now(), ["noop"], options=deadline)
    async with a_worker(database, clock) as bench:
        await bench.poll_once()
    row = await read_run(database, cancelled)
    assert (row["state"], row["reason"], row["attempt"]) == (6, "RUN_CANCELLED", 0)
    row = await read_run(database, late)
    assert (row["state"], row["reason"]) == (RunState.EXPIRED, "START_DEADLINE_PASSED")
    assert row["started_at"] is None
    assert await state_of(database, final) is RunState.SKIPPED
    assert await state_of(database, good) is RunState.SUCCEEDED
    assert await parcels(database) == []
    assert not len(bench.parts.held)


async def test_a_parcel_without_wanted_runs_is_deleted_at_once(
    database: Database, clock: ManualClock
) -> None:
    runs = await enqueue(database, clock.now(), ["noop", "noop"])
    await rows(database, "DELETE FROM betimes.runs WHERE id = ANY($1) RETURNING id", runs)
    async with a_worker(database, clock) as bench:
        await bench.once()
        assert await parcels(database) == []
        assert not len(bench.parts.held)


async def test_a_parcel_larger_than_the_free_slots_is_split(
    database: Database, clock: ManualClock
) -> None:
    """The rest keeps rank, fence and deliveries, and is leased next."""
    runs = await enqueue(database, clock.now(), ["noop"] * 10)
    async with a_worker(database, clock, slots=4) as bench:
        assert await bench.parts.lookout.tick() == 4
        leased, rest = sorted(await parcels(database), key=lambda row: row["worker_id"] is None)
        assert (len(leased["run_ids"]), len(rest["run_ids"])) == (4, 6)
        assert (rest["rank"], rest["fence"], rest["deliveries"]) == (leased["rank"], 0, 0)
        await settle_down()
        for _ in range(5):
            clock.advance(SECOND)
            await bench.once()
    assert [await state_of(database, run) for run in runs] == [RunState.SUCCEEDED] * 10
    assert await parcels(database) == []


async def test_mixed_endings_of_one_parcel(database: Database, clock: ManualClock) -> None:
    """Successes stay done, the failure moves into a parcel of its own, the rest of it is gone."""
    good, bad = await enqueue(database, clock.now(), ["noop", "fail"])
    async with a_worker(database, clock) as bench:
        await bench.once()
    assert await state_of(database, good) is RunState.SUCCEEDED
    (parcel,) = await parcels(database)
    assert parcel["run_ids"] == [bad]


async def test_a_failed_run_leaves_its_parcel_while_others_of_it_still_run(
    database: Database, clock: ManualClock
) -> None:
    """A run is never in two parcels."""
    bad, slow = await enqueue(database, clock.now(), ["fail", "sleep"])
    async with a_worker(database, clock) as bench:
        await bench.once()
        held, again = await parcels(database)
        if held["worker_id"] is None:
            held, again = again, held
        assert (held["run_ids"], again["run_ids"]) == ([slow], [bad])
        clock.advance(SECOND)
        await settle_down()
        await bench.parts.reporter.flush()
        assert [row["run_ids"] for row in await parcels(database)] == [[bad]]
    assert await state_of(database, slow) is RunState.SUCCEEDED


async def test_a_job_with_a_fixed_delay_gets_its_next_fire_from_the_end(
    database: Database, clock: ManualClock
) -> None:
    job = compose(to_ms(clock.now()), SHARD, 77)
    await rows(
        database,
        "INSERT INTO betimes.jobs (shard, id, tenant_id, created_at, updated_at, handler, tzdata,"
        " schedule, target) VALUES ($1, $2, $3, $4, $4, 'sleep', 'x',"
        """ '{"mode": "fixed_delay", "every": "PT1M"}', '{}') RETURNING id""",
        SHARD,
        job,
        TENANT,
        clock.now(),
    )
    (run,) = await enqueue(database, clock.now(), ["sleep"], job_id=job, revision=1, trigger=0)
    async with a_worker(database, clock) as bench:
        await bench.once()
        clock.advance(SECOND)
        await settle_down()
        await bench.parts.reporter.flush()
    assert await state_of(database, run) is RunState.SUCCEEDED
    (row,) = await rows(database, "SELECT next_fire_at FROM betimes.jobs")
    assert row["next_fire_at"] == clock.now() + MINUTE


async def test_what_it_cannot_do_it_leaves_to_others(
    database: Database, clock: ManualClock
) -> None:
    """Back within a moment, and the worker does not come back for it before others could."""
    (run,) = await enqueue(database, clock.now(), ["nobody knows"])
    async with a_worker(database, clock) as bench:
        assert await bench.poll_once() == 1
        clock.advance(0.1)
        (visible,) = await rows(database, "SELECT visible_at FROM betimes.parcels")
        assert visible["visible_at"] <= clock.now()
        assert await bench.poll_once() == 0, "it has seen it a moment ago"
        clock.advance(2)
        assert await bench.poll_once() == 1, "it may have learned nothing, and looks again"
    row = await read_run(database, run)
    assert (row["state"], row["attempt"]) == (RunState.QUEUED, 0)


async def test_what_is_its_own_in_the_same_place_it_goes_on_taking(
    database: Database, clock: ManualClock
) -> None:
    await enqueue(database, clock.now(), ["nobody knows", "noop"])
    async with a_worker(database, clock) as bench:
        assert await bench.poll_once() == 2
        await enqueue(database, clock.now(), ["noop"])
        assert await bench.poll_once() == 1
