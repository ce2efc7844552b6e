"""Alert rules look at stored facts: what they find, told once, and once that it is over."""

import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from betimes.config.notify import NotifySettings
from betimes.dispatcher.watch import Watcher
from betimes.domain.alert import KINDS, AlertState, Condition
from betimes.domain.event import Severity
from betimes.domain.ids import RunId, compose, shard_of, to_ms, to_text
from betimes.domain.job import Job
from betimes.ops.alerts import (
    delete_rule,
    end_silence,
    list_alerts,
    new_silence,
    put_rule,
    silence,
)
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.store.alerts import Rule
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from notify_kit import LAST, a_dispatcher, an_endpoint
from ops_kit import SHARDS, TENANT, every, fetch
from target_kit import a_target

MINUTE = timedelta(minutes=1)
PERIOD = NotifySettings().watch_every


def a_watcher(desk: Desk) -> Watcher:
    return Watcher(
        database=desk.database,
        clock=desk.clock,
        telemetry=Telemetry(clock=desk.clock),
        settings=NotifySettings(),
        shards=SHARDS,
        entropy=os.urandom,
    )


async def a_rule(desk: Desk, condition: Condition, threshold: float, **more: Any) -> Rule:
    now = desk.clock.now()
    rule = Rule(
        **{
            "tenant": TENANT,
            "name": "rule",
            "condition": condition,
            "threshold": threshold,
            "window": KINDS[condition].window,
            "hold": timedelta(0),
            "severity": Severity.ERROR,
            "created_at": now,
            "updated_at": now,
            **more,
        }
    )
    return (await put_rule(desk, rule, replaces=None, most=100)).rule


async def told(desk: Desk) -> list[tuple[str, str]]:
    """What was told, in order."""
    rows = await fetch(
        desk.database,
        "SELECT type, subject FROM betimes.outbox WHERE type LIKE 'alert.%' ORDER BY arrived_at",
    )
    return [(row["type"], row["subject"]) for row in rows]


async def a_job(desk: Desk, name: str = "job") -> Job:
    return await create_job(desk, TENANT, NewJob(definition=every(86_400), name=name))


async def a_run(desk: Desk, job: Job, state: int, at: datetime, *, seconds: float = 1.0) -> RunId:
    """A run of a job as it is stored in some state."""
    run = RunId(compose(to_ms(at), job.shard, int.from_bytes(os.urandom(7), "big")))
    over = at + timedelta(seconds=seconds) if state >= 4 else None
    await fetch(
        desk.database,
        "INSERT INTO betimes.runs (shard, id, tenant_id, job_id, due_at, state, queue, started_at,"
        " first_started_at, finished_at) VALUES ($1, $2, $3, $4, $5, $6, 'default', $7, $7, $8)"
        " RETURNING 1",
        job.shard,
        run,
        TENANT,
        job.id,
        at,
        state,
        at if over else None,
        over,
    )
    return run


async def a_letter(desk: Desk, job: Job, run: RunId, at: datetime, queue: str = "default") -> None:
    await fetch(
        desk.database,
        "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, job_id, dead_at, attempts,"
        " queue, fingerprint, reason) VALUES ($1, $2, $3, $4, $5, 1, $6, 'f', 'r') RETURNING 1",
        shard_of(run),
        run,
        TENANT,
        job.id,
        at,
        queue,
    )


async def died(desk: Desk, job: Job, at: datetime) -> None:
    await a_letter(desk, job, await a_run(desk, job, 5, at), at)


async def look(desk: Desk, clock: ManualClock) -> Sequence[tuple[str, str]]:
    """The next look; what has been told until then."""
    clock.advance(PERIOD)
    assert await a_watcher(desk).tick() == 1
    return await told(desk)


FIRING, RESOLVED = "alert.firing", "alert.resolved"


@pytest.mark.parametrize("named", [True, False])
async def test_failed_so_often_in_a_row(desk: Desk, clock: ManualClock, named: bool) -> None:
    job, other = await a_job(desk), await a_job(desk, "other")
    text = to_text("job", job.id)
    jobs = (job.id,) if named else ()
    await a_rule(desk, Condition.JOB_FAILED_N, 3, jobs=jobs)
    for _ in range(2):
        await died(desk, job, clock.now())
        await died(desk, other, clock.now())
        clock.advance(MINUTE)
    await a_run(desk, other, 4, clock.now())
    assert await look(desk, clock) == []
    await died(desk, job, clock.now())
    await died(desk, other, clock.now())
    assert await look(desk, clock) == [(FIRING, text)]
    # Once for the whole episode, however often it is looked at and however many more die.
    await died(desk, job, clock.now())
    for _ in range(3):
        assert await look(desk, clock) == [(FIRING, text)]
    await a_run(desk, job, 4, clock.now())
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]
    (episode,) = await list_alerts(desk, TENANT, before=LAST, states=(), rule="rule", most=10)
    assert episode.state is AlertState.RESOLVED
    assert episode.value == 3.0


async def test_late(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    text = to_text("job", job.id)
    await a_rule(desk, Condition.JOB_LATE, 600, jobs=(job.id,))
    run = await a_run(desk, job, 1, clock.now())
    clock.advance(9 * MINUTE)
    assert await look(desk, clock) == []
    clock.advance(MINUTE)
    assert await look(desk, clock) == [(FIRING, text)]
    # A worker has it now: it is late no longer, although the row does not say so yet.
    await fetch(
        desk.database,
        "INSERT INTO betimes.parcels (shard, id, tenant_id, worker_id, rank, visible_at,"
        " lease_until, queue, run_ids) VALUES ($1, $2, $3, $2, now(), now(), now(), 'default',"
        " ARRAY[$2::uuid]) RETURNING 1",
        shard_of(run),
        run,
        TENANT,
    )
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]


@pytest.mark.parametrize("named", [True, False])
async def test_missed(desk: Desk, clock: ManualClock, named: bool) -> None:
    job = await a_job(desk)
    text = to_text("job", job.id)
    jobs = (job.id,) if named else ()
    await a_rule(desk, Condition.JOB_MISSED, 5, jobs=jobs)

    async def decide(code: str, fires: int) -> None:
        await fetch(
            desk.database,
            "INSERT INTO betimes.decisions (shard, job_id, fire_at, fires, tenant_id, decided_at,"
            " revision, code) VALUES ($1, $2, $3, $4, $5, $3, 1, $6) RETURNING 1",
            job.shard,
            job.id,
            clock.now(),
            fires,
            TENANT,
            code,
        )

    await decide("JOB_PAUSED", 100)
    clock.advance(1)
    await decide("CATCHUP_WINDOW_EXCEEDED", 4)
    assert await look(desk, clock) == []
    await decide("CATCHUP_DROPPED", 1)
    assert await look(desk, clock) == [(FIRING, text)]
    clock.advance(timedelta(hours=1))
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]


async def test_no_success_since(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    text = to_text("job", job.id)
    await a_rule(desk, Condition.NO_SUCCESS_SINCE, 3_600, jobs=(job.id,))
    # A job that is new has not failed anybody yet.
    assert await look(desk, clock) == []
    await a_run(desk, job, 4, clock.now())
    clock.advance(59 * MINUTE)
    await a_run(desk, job, 5, clock.now())
    assert await look(desk, clock) == []
    clock.advance(MINUTE)
    assert await look(desk, clock) == [(FIRING, text)]
    await a_run(desk, job, 4, clock.now(), seconds=0.5)
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]


async def test_slower_than_usual(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    text = to_text("job", job.id)
    await a_rule(desk, Condition.JOB_SLOW, 3.0, jobs=(job.id,))
    for seconds in (2.0, 2.0, 1.9, 2.1, 30.0, 2.0, 5.0):
        await a_run(desk, job, 4, clock.now(), seconds=seconds)
        clock.advance(MINUTE)
    assert await look(desk, clock) == []
    await a_run(desk, job, 4, clock.now(), seconds=6.0)
    assert await look(desk, clock) == [(FIRING, text)]
    await a_run(desk, job, 4, clock.now(), seconds=2.0)
    assert await look(desk, clock) == [(FIRING, text), (RESOLVED, text)]


async def test_many_dead_letters(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    await a_rule(desk, Condition.DEAD_LETTER_RATE, 3, queues=("mail",))
    for queue in ("mail", "mail", "other"):
        run = await a_run(desk, job, 5, clock.now())
        await a_letter(desk, job, run, clock.now(), queue)
    assert await look(desk, clock) == []
    run = await a_run(desk, job, 5, clock.now())
    await a_letter(desk, job, run, clock.now(), "mail")
    assert await look(desk, clock) == [(FIRING, "tenant")]
    clock.advance(10 * MINUTE)
    assert await look(desk, clock) == [(FIRING, "tenant"), (RESOLVED, "tenant")]


@pytest.mark.parametrize(
    ("condition", "threshold"), [(Condition.QUEUE_LAG, 60.0), (Condition.QUEUE_DEPTH, 5.0)]
)
async def test_queues_that_lag_or_fill(
    desk: Desk, clock: ManualClock, condition: Condition, threshold: float
) -> None:
    await a_rule(desk, condition, threshold, queues=("mail",))

    async def a_parcel(queue: str, visible_at: datetime, runs: int) -> None:
        id_ = compose(to_ms(visible_at), 1, int.from_bytes(os.urandom(7), "big"))
        await fetch(
            desk.database,
            "INSERT INTO betimes.parcels (shard, id, tenant_id, rank, visible_at, queue, run_ids)"
            " VALUES (1, $1, $2, $3, $3, $4, $5) RETURNING 1",
            id_,
            TENANT,
            visible_at,
            queue,
            [id_] * runs,
        )

    await a_parcel("other", clock.now() - timedelta(hours=1), 100)
    await a_parcel("mail", clock.now() + timedelta(hours=1), 100)
    assert await look(desk, clock) == []
    await a_parcel("mail", clock.now() - 2 * MINUTE, 6)
    assert await look(desk, clock) == [(FIRING, "queue:mail")]
    await fetch(desk.database, "DELETE FROM betimes.parcels WHERE rank < now() RETURNING 1")
    assert await look(desk, clock) == [(FIRING, "queue:mail"), (RESOLVED, "queue:mail")]
    also = await fetch(
        desk.database,
        "SELECT type, body ->> 'queue' AS queue FROM betimes.outbox WHERE type LIKE 'queue.%'"
        " ORDER BY arrived_at",
    )
    lags = condition is Condition.QUEUE_LAG
    expected = [("queue.lagging", "mail"), ("queue.recovered", "mail")] if lags else []
    assert [(row["type"], row["queue"]) for row in also] == expected


async def test_silence_is_kept_and_what_still_holds_is_told_when_it_ends(
    desk: Desk, clock: ManualClock
) -> None:
    job = await a_job(desk)
    text = to_text("job", job.id)
    await a_rule(desk, Condition.JOB_FAILED_N, 1)
    quiet = new_silence(
        desk,
        rule="rule",
        subject=None,
        reason="known",
        until=clock.now() + timedelta(hours=1),
        by=None,
    )
    await silence(desk, TENANT, quiet)
    await died(desk, job, clock.now())
    assert await look(desk, clock) == []
    (episode,) = await list_alerts(desk, TENANT, before=LAST, states=(), rule=None, most=10)
    assert (episode.state, episode.is_told) == (AlertState.FIRING, False)
    await end_silence(desk, TENANT, quiet.id)
    assert await look(desk, clock) == [(FIRING, text)]


async def test_it_has_to_hold_for_a_while(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    await a_rule(desk, Condition.JOB_FAILED_N, 1, hold=5 * MINUTE)
    await died(desk, job, clock.now())
    assert await look(desk, clock) == []
    clock.advance(4 * MINUTE)
    assert await look(desk, clock) == []
    clock.advance(MINUTE)
    assert [kind for kind, _ in await look(desk, clock)] == [FIRING]


async def test_two_watchers_tell_once(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    await a_rule(desk, Condition.JOB_FAILED_N, 1)
    await died(desk, job, clock.now())
    clock.advance(PERIOD)
    looked = await a_watcher(desk).tick() + await a_watcher(desk).tick()
    assert looked == 1
    assert len(await told(desk)) == 1


async def test_a_rule_that_is_deleted_leaves_nothing_open(desk: Desk, clock: ManualClock) -> None:
    job = await a_job(desk)
    await a_rule(desk, Condition.JOB_FAILED_N, 1)
    await died(desk, job, clock.now())
    await look(desk, clock)
    await delete_rule(desk, TENANT, "rule")
    (episode,) = await list_alerts(desk, TENANT, before=LAST, states=(), rule=None, most=10)
    assert episode.state is AlertState.RESOLVED
    clock.advance(PERIOD)
    assert await a_watcher(desk).tick() == 0


async def test_an_alert_reaches_the_targets_of_its_rule_and_nobody_else(
    desk: Desk, clock: ManualClock
) -> None:
    job = await a_job(desk, "nightly")
    async with a_target() as one, a_target() as other, a_dispatcher(desk) as bench:
        chosen = await an_endpoint(desk, one.url(), types=["job.deleted"])
        await an_endpoint(desk, other.url(), types=["alert.*"])
        targets = (to_text("ep", chosen.id),)
        await a_rule(desk, Condition.JOB_FAILED_N, 1, targets=targets, severity=Severity.CRITICAL)
        await died(desk, job, clock.now())
        await look(desk, clock)
        await bench.turn()
        assert other.received == []
        (got,) = one.received
        told_to = json.loads(got.body)
        assert (told_to["type"], told_to["severity"]) == ("alert.firing", "critical")
        assert told_to["data"]["name"] == "nightly"
        assert told_to["data"]["job_id"] == to_text("job", job.id)
