"""Explanations from rows as the engine leaves them."""

from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.ids import shard_of, to_text
from betimes.domain.job import Definition
from betimes.domain.run import NewRun
from betimes.ops import NewJob, create_job
from betimes.ops.cluster import NodeRow, read_nodes
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_run
from betimes.ops.explain import explain_job, explain_run
from betimes.schedule import parse
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from ops_kit import HOUR, SECOND, TENANT, every, fetch, make_desk, runs_of


async def execute(database: Database, statement: str, *arguments: object) -> None:
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(statement, *arguments)


async def a_worker(database: Database, clock: ManualClock, *, handlers: list[str]) -> None:
    await execute(
        database,
        "INSERT INTO betimes.workers (id, name, queues, handlers, slots, started_at, heartbeat_at) "
        "VALUES ($1, 'w', '{default}', $2, 4, $3, $3)",
        UUID(int=77),
        handlers,
        clock.now(),
    )


async def test_behind_a_full_key_with_position_and_estimate(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    await a_worker(database, clock, handlers=["noop"])
    runs = [(await enqueue_run(desk, TENANT, NewRun(handler="noop"))) for _ in range(3)]
    for run in runs:
        await execute(
            database,
            "UPDATE betimes.parcels SET gate = 'k', held = 1, held_at = $3 "
            "WHERE shard = $1 AND $2 = ANY (run_ids)",
            shard_of(run),
            run,
            clock.now(),
        )
    await execute(
        database,
        "UPDATE betimes.parcels SET held = 0, held_at = NULL, worker_id = $3, lease_until = $4, "
        "slot = true, rank = rank - interval '1 s' WHERE shard = $1 AND $2 = ANY (run_ids)",
        shard_of(runs[0]),
        runs[0],
        UUID(int=77),
        clock.now() + HOUR,
    )
    await execute(
        database,
        "INSERT INTO betimes.limits (tenant_id, kind, key, max_inflight) "
        "VALUES ($1, 'key', 'k', 1)",
        TENANT,
    )
    told = await explain_run(desk, TENANT, runs[2])
    (reason,) = told.reasons
    assert (told.verdict, told.eligible, reason.code) == ("waiting", True, "CONCURRENCY_KEY_FULL")
    assert reason.since == clock.now()
    assert reason.evidence["holders"] == [to_text("run", runs[0])]
    assert (reason.evidence["limit"], reason.evidence["in_flight"]) == (1, 1)
    holder = await explain_run(desk, TENANT, runs[0])
    assert (holder.verdict, holder.reasons[0].code) == ("running", "LEASED")
    clock.advance(2 * HOUR)
    late = await explain_run(desk, TENANT, runs[0])
    assert late.reasons[0].code == "LEASE_EXPIRED_WAIT"


async def test_a_handler_nobody_has(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="noop"))
    assert [one.code for one in (await explain_run(desk, TENANT, run)).reasons] == [
        "NO_WORKER_FOR_QUEUE"
    ]
    await a_worker(database, clock, handlers=["other"])
    assert [one.code for one in (await explain_run(desk, TENANT, run)).reasons] == [
        "NO_WORKER_FOR_HANDLER"
    ]


async def test_a_fire_that_is_a_run_explains_that_run(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(5)))
    first, *_ = await runs_of(database, job.id)
    told = await explain_job(desk, TENANT, job.id, at=first["fire_at"])
    assert (told.verdict, told.run) == ("waiting", first["id"])
    blocker = UUID(int=5)
    await execute(
        database,
        "UPDATE betimes.runs SET state = 7, reason = 'OVERLAP_SKIPPED', finished_at = $3, "
        "blocked_by = $4 WHERE shard = $1 AND id = $2",
        first["shard"],
        first["id"],
        clock.now(),
        blocker,
    )
    told = await explain_job(desk, TENANT, job.id, at=first["fire_at"])
    (reason,) = told.reasons
    assert (told.verdict, reason.code) == ("will_not_run", "OVERLAP_SKIPPED")
    assert reason.evidence["blocked_by"] == to_text("run", blocker)


async def test_times_at_which_a_schedule_does_not_fire(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    await a_worker(database, clock, handlers=["noop"])
    start = clock.now() + timedelta(days=1)
    members = {
        "type": "cron",
        "expr": "30 2 * * *",
        "timezone": "Europe/Stockholm",
        "dst": {"gap": "skip"},
        "start_at": start.isoformat(),
    }
    schedule = parse(members).to_dict()
    job = await create_job(
        desk, TENANT, NewJob(definition=Definition(schedule=schedule, handler="noop"))
    )
    before = await explain_job(desk, TENANT, job.id, at=clock.now() + HOUR)
    assert before.reasons[0].code == "BEFORE_START"
    off = await explain_job(desk, TENANT, job.id, at=start + timedelta(days=1, seconds=1))
    assert (off.verdict, off.reasons[0].code) == ("will_not_run", "NOT_DUE")
    rows = await fetch(database, "SELECT next_fire_at FROM betimes.jobs")
    told = await explain_job(desk, TENANT, job.id, at=rows[0]["next_fire_at"])
    assert (told.verdict, told.reasons) == ("will_run", [])
    past = await explain_job(desk, TENANT, job.id, at=clock.now() - SECOND)
    assert past.reasons[0].code == "CREATED_AFTER_FIRE"


async def test_workers_that_are_gone_are_no_capacity(
    database: Database, clock: ManualClock
) -> None:
    """As soon as whatever they held has run out, not minutes later."""
    desk = make_desk(database, clock)
    await a_worker(database, clock, handlers=["noop"])
    run = await enqueue_run(desk, TENANT, NewRun(handler="noop"))
    clock.advance(desk.seen_within - SECOND)
    (reason,) = (await explain_run(desk, TENANT, run)).reasons
    assert (reason.code, reason.evidence["free"]) == ("OFFERED", 4)
    clock.advance(SECOND)
    (reason,) = (await explain_run(desk, TENANT, run)).reasons
    assert (reason.code, reason.blocking) == ("NO_WORKER_FOR_QUEUE", True)
    (node,) = await _nodes(database, desk, heard_at=clock.now() - desk.seen_within)
    assert not node.live
    (node,) = await _nodes(database, desk, heard_at=clock.now() - desk.seen_within + SECOND)
    assert node.live


async def _nodes(database: Database, desk: Desk, *, heard_at: datetime) -> list[NodeRow]:
    await execute(database, "DELETE FROM betimes.nodes")
    await execute(
        database,
        "INSERT INTO betimes.nodes (id, name, version, tzdata, roles, started_at, heartbeat_at,"
        " draining) VALUES ($1, 'n', '1', '2026a', '{worker}', $2, $2, false)",
        UUID(int=3),
        heard_at,
    )
    return await read_nodes(desk)
