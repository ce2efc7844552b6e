"""Single runs that are enqueued at the same time share a commit; each caller has its own answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from betimes.domain.errors import Invalid, Unavailable
from betimes.domain.run import NewRun
from betimes.ops.group import EnqueueGroup
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import OTHER, TENANT, add_tenant, fetch, make_desk, parcelled


@asynccontextmanager
async def running(group: EnqueueGroup) -> AsyncIterator[EnqueueGroup]:
    async with asyncio.TaskGroup() as tasks:
        loop = tasks.create_task(group.run())
        yield group
        loop.cancel()


async def test_concurrent_callers_share_commits(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    async with running(EnqueueGroup(desk=desk, collect_seconds=0)) as group:
        runs = await asyncio.gather(
            *(group.enqueue(TENANT, NewRun(handler="a", payload=b"%d" % n)) for n in range(100))
        )
    rows = await fetch(database, "SELECT id, payload FROM betimes.runs")
    assert {row["id"]: row["payload"] for row in rows} == {
        run: b"%d" % n for n, run in enumerate(runs)
    }
    assert sorted(runs) == await parcelled(database)
    assert group.commits == 1


async def test_tenants_do_not_share_a_transaction(database: Database, clock: ManualClock) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    async with running(EnqueueGroup(desk=desk, collect_seconds=0)) as group:
        await asyncio.gather(
            *(group.enqueue(tenant, NewRun(handler="a")) for tenant in (TENANT, OTHER) * 3)
        )
    rows = await fetch(
        database, "SELECT tenant_id, count(*) AS n FROM betimes.runs GROUP BY 1 ORDER BY 1"
    )
    assert [(row["tenant_id"], row["n"]) for row in rows] == [(TENANT, 3), (OTHER, 3)]
    assert group.commits == 2


async def test_one_that_the_database_refuses_does_not_harm_the_others(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    good, bad = NewRun(handler="a"), NewRun(handler="a", options={"x": "\x00"})
    async with running(EnqueueGroup(desk=desk, collect_seconds=0)) as group:
        answers = await asyncio.gather(
            *(group.enqueue(TENANT, new) for new in (good, bad, good)), return_exceptions=True
        )
    assert [isinstance(answer, Invalid) for answer in answers] == [False, True, False]
    assert len(await parcelled(database)) == 2


async def test_what_makes_no_sense_is_told_before_it_joins(
    database: Database, clock: ManualClock
) -> None:
    group = EnqueueGroup(desk=make_desk(database, clock))
    with pytest.raises(Invalid, match="expected a handler"):
        await group.enqueue(TENANT, NewRun())


async def test_nobody_waits_for_a_group_that_has_ended(
    database: Database, clock: ManualClock
) -> None:
    async with running(EnqueueGroup(desk=make_desk(database, clock))) as group:
        await group.enqueue(TENANT, NewRun(handler="a"))
    with pytest.raises(Unavailable, match="the node stops"):
        await group.enqueue(TENANT, NewRun(handler="a"))
