"""Quotas as a node knows them: refused before anything is written, and cheap to ask."""

from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from betimes.domain.run import NewRun
from betimes.ops import meter as module
from betimes.ops.create import NewJob, create_jobs
from betimes.ops.end import delete_job
from betimes.ops.enqueue import enqueue_runs
from betimes.ops.meter import Demand, Meter
from betimes.ops.quotas import QuotaReached, usage_of
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import OTHER, TENANT, add_tenant, every, fetch, make_desk

RUN = NewRun(handler="h")
ONE_JOB, ONE_RUN = Demand.of(jobs=[None]), Demand.of(runs=[None])


async def refused(meter: Meter, desk: Any, quotas: dict[str, int], demand: Demand) -> QuotaReached:
    with pytest.raises(QuotaReached) as caught:
        await meter.admit(desk, TENANT, quotas, demand)
    return caught.value


async def test_without_quotas_nobody_is_asked(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    with patch.object(module, "_count", side_effect=AssertionError("the database was asked")):
        await Meter().admit(desk, TENANT, {}, Demand.of(jobs=[b"x"] * 9, runs=[b"y"] * 9))


async def test_stored_jobs_are_counted_exactly_on_one_node(
    database: Database, clock: ManualClock
) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"jobs": 3}
    new = NewJob(definition=every(60))
    jobs = []
    for _ in range(3):
        await meter.admit(desk, TENANT, quotas, ONE_JOB)
        jobs += await create_jobs(desk, TENANT, [new])
    error = await refused(meter, desk, quotas, ONE_JOB)
    assert (error.quota, error.limit, error.used, error.resets_at) == ("jobs", 3, 3, None)
    await delete_job(desk, TENANT, jobs[0].id)
    clock.advance(1)
    await meter.admit(desk, TENANT, quotas, ONE_JOB)


async def test_other_nodes_are_noticed_after_a_second(
    database: Database, clock: ManualClock
) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"jobs": 3}
    await meter.admit(desk, TENANT, quotas, Demand())
    await meter.admit(desk, TENANT, quotas, ONE_JOB)
    await create_jobs(desk, TENANT, [NewJob(definition=every(60))] * 3)
    await meter.admit(desk, TENANT, quotas, ONE_JOB)  # believed for a second, not longer
    clock.advance(1)
    assert (await refused(meter, desk, quotas, ONE_JOB)).used == 3


async def test_a_count_is_believed_for_a_second(database: Database, clock: ManualClock) -> None:
    desk, meter, asked = make_desk(database, clock), Meter(), list[str]()
    real = module._count

    async def count(desk: Any, tenant: Any, name: str, limit: int) -> dict[str, int]:
        asked.append(name)
        return await real(desk, tenant, name, limit)

    with patch.object(module, "_count", new=count):
        for _ in range(50):
            await meter.admit(desk, TENANT, {"jobs": 1000, "backlog": 1000}, ONE_JOB)
        assert asked == ["jobs"]
        clock.advance(1)
        await meter.admit(desk, TENANT, {"active_runs": 9, "backlog": 9}, ONE_RUN)
        assert asked == ["jobs", "active_runs"], "one look counts what waits and what runs"


async def test_waiting_and_active_runs_are_told_apart(
    database: Database, clock: ManualClock
) -> None:
    desk, meter = make_desk(database, clock), Meter()
    await enqueue_runs(desk, TENANT, [RUN] * 2)
    await enqueue_runs(desk, TENANT, [NewRun(handler="h", delay=timedelta(hours=1))])
    await enqueue_runs(desk, TENANT, [RUN] * 3)
    await fetch(
        database,
        "UPDATE betimes.parcels SET worker_id = id, lease_until = now() "
        "WHERE cardinality(run_ids) = 3",
    )
    assert await usage_of(desk, TENANT) == {
        "jobs": 0,
        "active_runs": 5,
        "backlog": 2,
        "max_in_flight": 3,
        "keys": 0,
        "queues": 0,
    }
    await meter.admit(desk, TENANT, {"active_runs": 6, "backlog": 3}, ONE_RUN)
    assert (await refused(meter, desk, {"active_runs": 5}, ONE_RUN)).quota == "active_runs"
    assert (await refused(Meter(), desk, {"backlog": 2}, ONE_RUN)).used == 2


async def test_a_rate_comes_back_with_time(database: Database, clock: ManualClock) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"runs_per_minute": 60}
    for _ in range(60):
        await meter.admit(desk, TENANT, quotas, ONE_RUN)
    error = await refused(meter, desk, quotas, ONE_RUN)
    assert (error.quota, error.limit, error.used) == ("runs_per_minute", 60, 60)
    assert error.resets_at == clock.now() + timedelta(seconds=1)
    clock.advance(1)
    await meter.admit(desk, TENANT, quotas, ONE_RUN)
    await refused(meter, desk, quotas, ONE_RUN)
    await meter.admit(desk, TENANT, quotas, ONE_JOB)


async def test_a_large_batch_waits_for_a_full_bucket_and_is_paid_back(
    database: Database, clock: ManualClock
) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"creates_per_second": 10}
    await meter.admit(desk, TENANT, quotas, Demand.of(runs=[None] * 50))
    for second in range(1, 5):
        clock.advance(1)
        await refused(meter, desk, quotas, ONE_RUN)
        assert second < 5
    clock.advance(1)
    for _ in range(10):
        await meter.admit(desk, TENANT, quotas, ONE_RUN)
    await refused(meter, desk, quotas, ONE_RUN)


async def test_what_is_refused_takes_nothing(database: Database, clock: ManualClock) -> None:
    """Of several quotas one is used up: the tokens of the others stay."""
    desk, meter = make_desk(database, clock), Meter()
    quotas = {"creates_per_second": 5, "payload_bytes_per_minute": 10}
    await meter.admit(desk, TENANT, quotas, Demand.of(runs=[b"x" * 10]))
    for _ in range(20):
        error = await refused(meter, desk, quotas, Demand.of(runs=[b"x"]))
        assert error.quota == "payload_bytes_per_minute"
    for _ in range(4):
        await meter.admit(desk, TENANT, quotas, ONE_RUN)
    assert (await refused(meter, desk, quotas, ONE_RUN)).quota == "creates_per_second"


async def test_a_payload_may_be_so_large(database: Database, clock: ManualClock) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"payload_bytes": 10}
    await meter.admit(desk, TENANT, quotas, Demand.of(jobs=[b"x" * 10], runs=[None]))
    error = await refused(meter, desk, quotas, Demand.of(runs=[b"x", b"x" * 11]))
    assert (error.quota, error.limit, error.used) == ("payload_bytes", 10, 11)
    assert error.sentence.endswith("allows payloads of at most 10 bytes, got one of 11")


async def test_tenants_have_their_own(database: Database, clock: ManualClock) -> None:
    desk, meter, quotas = make_desk(database, clock), Meter(), {"creates_per_second": 1, "jobs": 1}
    await add_tenant(database)
    await meter.admit(desk, TENANT, quotas, ONE_JOB)
    await meter.admit(desk, OTHER, quotas, ONE_JOB)
    await refused(meter, desk, quotas, ONE_JOB)


async def test_nothing_is_nothing(database: Database, clock: ManualClock) -> None:
    desk, meter = make_desk(database, clock), Meter()
    for quota in ("jobs", "creates_per_second"):
        assert (await refused(meter, desk, {quota: 0}, ONE_JOB)).limit == 0
