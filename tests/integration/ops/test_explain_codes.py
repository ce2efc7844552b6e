"""Every code that explains a run, from rows: rule, since when, what would free it, whose turn.

Long because it is a list with a test for every code.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import RunId, shard_of, to_text
from betimes.domain.run import NewRun
from betimes.ops import NewJob, create_job
from betimes.ops.codes import CODES, fix_of, summary_of
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_run
from betimes.ops.explain import Explanation, explain_job, explain_run
from betimes.ops.pause import pause_job
from betimes.ops.rates import KeyRate, put_rate
from betimes.store.database import Database
from betimes.testing import ManualClock
from integration.ops.test_explain import a_worker, execute
from ops_kit import MINUTE, SECOND, TENANT, every, make_desk

WORKER = UUID(int=77)
NEEDS_NO_FIX = {"NOT_DUE", "JITTER_DELAY", "RETRY_BACKOFF", "CATCHUP_PACED", "LEASED"}
NEEDS_NO_FIX |= {
    "OFFERED",
    "FAIR_SHARE_WAIT",
    "LOWER_PRIORITY",
    "SCHEDULER_LAGGING",
    "LEASE_EXPIRED_WAIT",
}


@dataclass
class Scene:
    """A run that waits beside a worker that could do it, until something stands in its way."""

    desk: Desk
    database: Database
    clock: ManualClock

    async def add(self, **more: Any) -> RunId:
        return await enqueue_run(self.desk, TENANT, NewRun(handler="noop", **more))

    async def sql(self, statement: str, *arguments: object) -> None:
        await execute(self.database, statement, *arguments)

    async def parcel(self, run: RunId, changes: str, *arguments: object) -> None:
        await self.sql(
            f"UPDATE betimes.parcels SET {changes} WHERE shard = $1 AND $2 = ANY (run_ids)",
            shard_of(run),
            run,
            *arguments,
        )

    async def lease(self, run: RunId, *, slot: bool = False) -> None:
        until = self.clock.now() + MINUTE
        changes = f"worker_id = $3, lease_until = $4, slot = {str(slot).lower()}"
        await self.parcel(run, changes, WORKER, until)


Make = Callable[[Scene], Awaitable[RunId]]
CASES: dict[str, Make] = {}


def case(code: str) -> Callable[[Make], Make]:
    def note(make: Make) -> Make:
        CASES[code] = make
        return make

    return note


@case("CLUSTER_PAUSED")
async def _(scene: Scene) -> RunId:
    await scene.sql("UPDATE betimes.cluster SET paused_at = $1", scene.clock.now())
    return await scene.add()


@case("TENANT_SUSPENDED")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.sql("UPDATE betimes.tenants SET state = 2, state_reason = 'unpaid'")
    return run


@case("QUEUE_PAUSED")
async def _(scene: Scene) -> RunId:
    await scene.sql(
        "INSERT INTO betimes.queues (tenant_id, name, paused_at, paused_reason)"
        " VALUES ($1, 'default', $2, 'x')",
        TENANT,
        scene.clock.now(),
    )
    return await scene.add()


@case("NO_WORKER_FOR_QUEUE")
async def _(scene: Scene) -> RunId:
    return await scene.add(queue="nobody")


@case("NO_WORKER_FOR_HANDLER")
async def _(scene: Scene) -> RunId:
    await scene.sql("UPDATE betimes.workers SET handlers = '{other}'")
    return await scene.add()


@case("WORKERS_DRAINING")
async def _(scene: Scene) -> RunId:
    await scene.sql("UPDATE betimes.workers SET draining = true")
    return await scene.add()


@case("CONCURRENCY_KEY_FULL")
async def _(scene: Scene) -> RunId:
    options = {"concurrency": {"key": "k", "limit": 1}}
    first, second = await scene.add(options=options), await scene.add(options=options)
    await scene.lease(first, slot=True)
    await scene.parcel(second, "held = 1, held_at = $3", scene.clock.now())
    return second


@case("OVERLAP_BUFFERED")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.parcel(run, "line = $2, held = 1, held_at = $3", scene.clock.now())
    return run


@case("QUOTA_EXCEEDED")
async def _(scene: Scene) -> RunId:
    await scene.sql(
        "INSERT INTO betimes.queues (tenant_id, name, max_concurrency, settings)"
        """ VALUES ($1, 'default', 1, '{"max_concurrency": 1}')""",
        TENANT,
    )
    await scene.lease(await scene.add())
    return await scene.add()


@case("RATE_LIMITED")
async def _(scene: Scene) -> RunId:
    await put_rate(scene.desk, TENANT, KeyRate(key="stripe", limit=2, per_ms=60_000))
    await scene.sql(
        "UPDATE betimes.limits SET tokens = 0, refilled_at = $1 WHERE kind = 'rate'",
        scene.clock.now(),
    )
    runs = [await scene.add(options={"rate_limit_key": "stripe"}) for _ in range(3)]
    for place, run in enumerate(runs):
        changes = "held = 4, held_at = $3, rank = rank + $4::interval"
        await scene.parcel(run, changes, scene.clock.now(), timedelta(milliseconds=place))
    return runs[2]


@case("NOT_DUE")
async def _(scene: Scene) -> RunId:
    return await scene.add(delay=5 * SECOND)


@case("JITTER_DELAY")
async def _(scene: Scene) -> RunId:
    run = await scene.add(delay=5 * SECOND)
    await scene.sql("UPDATE betimes.runs SET fire_at = $1", scene.clock.now())
    return run


@case("RETRY_BACKOFF")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    started = scene.clock.now() - SECOND
    await scene.sql("UPDATE betimes.runs SET state = 3, attempt = 1, started_at = $1", started)
    await scene.parcel(run, "visible_at = $3, lane = 1", scene.clock.now() + MINUTE)
    return run


@case("CIRCUIT_OPEN")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.sql("UPDATE betimes.runs SET state = 3, attempt = 1, reason = 'BREAKER_OPEN'")
    await scene.parcel(run, "visible_at = $3, lane = 1", scene.clock.now() + MINUTE)
    return run


@case("CATCHUP_PACED")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.parcel(run, "visible_at = $3, lane = 2", scene.clock.now() + MINUTE)
    return run


@case("CATCHUP_AWAITS_APPROVAL")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.parcel(run, "held = 3, held_at = $3, lane = 2", scene.clock.now())
    return run


@case("LOWER_PRIORITY")
async def _(scene: Scene) -> RunId:
    run = await scene.add(priority=1)
    for _ in range(8):  # some of them in the shard of the first
        await scene.add(priority=9)
    return run


@case("FAIR_SHARE_WAIT")
async def _(scene: Scene) -> RunId:
    run = await scene.add(options={"fairness_key": "a"})
    for _ in range(8):
        await scene.add(options={"fairness_key": "b"})
    return run


@case("WORKERS_BUSY")
async def _(scene: Scene) -> RunId:
    await scene.sql("UPDATE betimes.workers SET busy = slots")
    return await scene.add()


@case("OFFERED")
async def _(scene: Scene) -> RunId:
    return await scene.add()


@case("SHARD_UNOWNED")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.sql("DELETE FROM betimes.parcels")
    await scene.sql("UPDATE betimes.shards SET owner = NULL, lease_until = NULL")
    return run


@case("SCHEDULER_LAGGING")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.sql("DELETE FROM betimes.parcels")
    await scene.sql(
        "UPDATE betimes.shards SET owner = $1, lease_until = $2, published_through = $3",
        UUID(int=1),
        scene.clock.now() + MINUTE,
        scene.clock.now() - MINUTE,
    )
    return run


@case("LEASED")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.lease(run)
    return run


@case("LEASE_EXPIRED_WAIT")
async def _(scene: Scene) -> RunId:
    run = await scene.add()
    await scene.lease(run)
    scene.clock.advance(2 * MINUTE)
    return run


ENDS = {
    "OVERLAP_SKIPPED": 7,
    "DEDUPED": 7,
    "SKIPPED_BY_USER": 7,
    "JOB_PAUSED": 7,
    "START_DEADLINE_PASSED": 8,
    "RUN_CANCELLED": 6,
    "RETRIES_EXHAUSTED": 5,
    "PERMANENT_ERROR": 5,
    "TIMED_OUT": 5,
}


async def told(database: Database, clock: ManualClock, make: Make) -> Explanation:
    scene = Scene(make_desk(database, clock), database, clock)
    await execute(
        database,
        "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A') ON CONFLICT DO NOTHING",
        TENANT,
    )
    await a_worker(database, clock, handlers=["noop"])
    run = await make(scene)
    return await explain_run(scene.desk, TENANT, run)


@pytest.mark.parametrize("code", CASES)
async def test_why_a_run_waits(database: Database, clock: ManualClock, code: str) -> None:
    answer = await told(database, clock, CASES[code])
    reasons = {reason.code: reason for reason in answer.reasons}
    assert code in reasons, list(reasons)
    reason = reasons[code]
    assert code in CODES
    assert "?" not in summary_of(code, reason.evidence)
    assert code in NEEDS_NO_FIX or fix_of(code, reason.evidence)[0], "what would free it"
    assert reason.since is not None or code in {"SHARD_UNOWNED", "LEASED", "LEASE_EXPIRED_WAIT"}
    if answer.verdict == "waiting" and code not in {"SHARD_UNOWNED", "SCHEDULER_LAGGING"}:
        assert answer.ahead is not None, "a position"
    assert answer.eligible == (not reason.blocking) or len(reasons) > 1


@pytest.mark.parametrize("code", ENDS)
async def test_why_a_run_ended(database: Database, clock: ManualClock, code: str) -> None:
    async def make(scene: Scene) -> RunId:
        run = await scene.add()
        await scene.sql(
            "UPDATE betimes.runs SET state = $1, reason = $2, finished_at = $3",
            ENDS[code],
            code,
            scene.clock.now(),
        )
        await scene.sql("DELETE FROM betimes.parcels")
        return run

    answer = await told(database, clock, make)
    (reason,) = answer.reasons
    assert (reason.code, reason.since) == (code, clock.now())
    assert answer.verdict == ("ran" if ENDS[code] == 5 else "will_not_run")
    assert code in CODES


async def test_a_rate_says_whose_turn_comes_when(database: Database, clock: ManualClock) -> None:
    """Two a minute and two before it: its turn comes with the third token."""
    answer = await told(database, clock, CASES["RATE_LIMITED"])
    assert answer.ahead == 2
    assert answer.expected_at == clock.now() + 90 * SECOND
    (reason,) = answer.reasons
    assert reason.evidence["free_at"] == (clock.now() + 30 * SECOND).isoformat()
    assert (reason.evidence["limit"], reason.evidence["per_seconds"]) == (2, 60.0)


async def test_the_rates_of_queue_and_tenant_are_told(
    database: Database, clock: ManualClock
) -> None:
    async def make(scene: Scene) -> RunId:
        await scene.sql(
            "INSERT INTO betimes.queues (tenant_id, name, rate_limit, rate_per_ms)"
            " VALUES ($1, 'default', 5, 1000)",
            TENANT,
        )
        await scene.sql("""UPDATE betimes.tenants SET quotas = '{"runs_per_minute": 60}'""")
        await scene.sql(
            "INSERT INTO betimes.limits (tenant_id, kind, key, tokens, refilled_at) VALUES"
            " ($1, 'tenant', '', 0, $2), ($1, 'queue', 'default', 0.5, $2)",
            TENANT,
            scene.clock.now(),
        )
        return await scene.add()

    answer = await told(database, clock, make)
    frees = {one.evidence["kind"]: one.evidence["free_at"] for one in answer.reasons}
    now = clock.now()
    assert frees == {
        "tenant": (now + SECOND).isoformat(),
        "queue": (now + SECOND / 10).isoformat(),
    }


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
