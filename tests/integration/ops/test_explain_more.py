"""Positions over all shards, and what sentences name: errors, keys, episodes, failures."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import RunId, shard_of, to_text
from betimes.ops import NewJob, create_job
from betimes.ops.codes import fix_of, summary_of
from betimes.ops.explain import explain_job
from betimes.ops.pause import pause_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from integration.ops.test_explain import execute
from integration.ops.test_explain_codes import Scene, told
from ops_kit import SECOND, TENANT, every, make_desk

STANDING: dict[str, tuple[str, ...]] = {
    "QUOTA_EXCEEDED": (
        (
            "INSERT INTO betimes.queues (tenant_id, name, max_concurrency, settings)"
            """ SELECT id, 'default', 0, '{"max_concurrency": 0}' FROM betimes.tenants"""
        ),
    ),
    "WORKERS_BUSY": ("UPDATE betimes.workers SET busy = slots",),
    "QUEUE_PAUSED": (
        (
            "INSERT INTO betimes.queues (tenant_id, name, paused_at)"
            " SELECT id, 'default', now() FROM betimes.tenants"
        ),
    ),
    "RATE_LIMITED": (
        (
            "INSERT INTO betimes.queues (tenant_id, name, rate_limit, rate_per_ms)"
            " SELECT id, 'default', 1, 2000 FROM betimes.tenants"
        ),
        (
            "INSERT INTO betimes.limits (tenant_id, kind, key, tokens, refilled_at)"
            " SELECT id, 'queue', 'default', 0, '{now}' FROM betimes.tenants"
        ),
    ),
}


@pytest.mark.parametrize("code", STANDING)
async def test_whoever_stands_before_it_in_any_shard_is_counted(
    database: Database, clock: ManualClock, code: str
) -> None:
    async def make(scene: Scene) -> RunId:
        for statement in STANDING[code]:
            await scene.sql(statement.replace("{now}", clock.now().isoformat()))
        runs = []
        for _ in range(8):
            runs.append(await scene.add())
            clock.advance(timedelta(milliseconds=1))
        await scene.add()
        assert len({shard_of(run) for run in runs}) > 1
        return runs[5]

    answer = await told(database, clock, make)
    assert code in {reason.code for reason in answer.reasons}
    assert (answer.ahead, answer.ahead_at_least) == (5, False)
    if code == "QUEUE_PAUSED":
        assert answer.expected_at is None
    if code == "RATE_LIMITED":
        started = clock.now() - timedelta(milliseconds=8)
        assert answer.expected_at == started + 12 * SECOND


async def sentence(
    database: Database, clock: ManualClock, changes: str, *arguments: object, **more: Any
) -> str:
    """What is said about a run that ended so."""

    async def make(scene: Scene) -> RunId:
        run = await scene.add(**more)
        await scene.sql(
            f"UPDATE betimes.runs SET finished_at = $1, {changes}", clock.now(), *arguments
        )
        await scene.sql("DELETE FROM betimes.parcels")
        return run

    (reason,) = (await told(database, clock, make)).reasons
    return summary_of(reason.code, reason.evidence)


async def test_the_last_error_is_named(database: Database, clock: ManualClock) -> None:
    error = """{"type": "ValueError", "message": "no such account.\\nmore"}"""
    changes = "state = 5, reason = 'RETRIES_EXHAUSTED', error = $2::jsonb"
    said = await sentence(database, clock, changes, error)
    assert said == "It failed as often as it may, last with ValueError: no such account."


async def test_a_run_that_would_not_wait_for_its_key(
    database: Database, clock: ManualClock
) -> None:
    options = {"concurrency": {"key": "k", "limit": 1, "on_limit": "skip"}}
    changes = "state = 7, reason = 'CONCURRENCY_KEY_FULL'"
    said = await sentence(database, clock, changes, options=options)
    assert said == "Its concurrency key had no place free."


async def test_what_waits_for_approval_names_the_episode(
    database: Database, clock: ManualClock
) -> None:
    episode = UUID(int=9)

    async def make(scene: Scene) -> RunId:
        run = await scene.add()
        changes = "held = 3, held_at = $3, lane = 2, episode = $4"
        await scene.parcel(run, changes, scene.clock.now(), episode)
        return run

    answer = await told(database, clock, make)
    (reason,) = answer.reasons
    assert (reason.evidence["episode"], answer.expected_at) == (to_text("ctu", episode), None)
    assert to_text("ctu", episode) in fix_of(reason.code, reason.evidence)[1]


async def test_a_rule_says_after_how_many_failures(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(5)))
    await pause_job(desk, TENANT, job.id)
    await execute(
        database,
        "UPDATE betimes.jobs SET state = 2,"
        """ state_reason = '{"code": "JOB_AUTO_PAUSED", "failures": 3}'""",
    )
    (reason,) = (await explain_job(desk, TENANT, job.id, at=None)).reasons
    said = summary_of(reason.code, reason.evidence)
    assert said == "A rule has paused the job after 3 failures in a row."
