"""Single runs that are enqueued at the same time share a commit; each caller has its own answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from betimes.domain.errors import AlreadyExists, Invalid, Unavailable
from betimes.domain.run import NewRun
from betimes.ops import NewJob
from betimes.ops.group import Group, job_group, run_group
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import OTHER, TENANT, add_tenant, every, fetch, make_desk, parcelled

A = TypeVar("A")
M = TypeVar("M")


@asynccontextmanager
async def running(group: Group[A, M]) -> AsyncIterator[Group[A, M]]:
    async with asyncio.TaskGroup() as tasks:
        loop = tasks.create_task(group.run())
        yield group
        loop.cancel()


async def test_concurrent_callers_share_commits(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    async with running(run_group(desk, collect_seconds=0)) as group:
        runs = await asyncio.gather(
            *(group.ask(TENANT, NewRun(handler="a", payload=b"%d" % n)) for n in range(100))
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
    async with running(run_group(desk, collect_seconds=0)) as group:
        await asyncio.gather(
            *(group.ask(tenant, NewRun(handler="a")) for tenant in (TENANT, OTHER) * 3)
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
    async with running(run_group(desk, collect_seconds=0)) as group:
        answers = await asyncio.gather(
            *(group.ask(TENANT, new) for new in (good, bad, good)), return_exceptions=True
        )
    assert [isinstance(answer, Invalid) for answer in answers] == [False, True, False]
    assert len(await parcelled(database)) == 2


async def test_what_makes_no_sense_is_told_before_it_joins(
    database: Database, clock: ManualClock
) -> None:
    group = run_group(make_desk(database, clock))
    with pytest.raises(Invalid, match="expected a handler"):
        await group.ask(TENANT, NewRun())


async def test_nobody_waits_for_a_group_that_has_ended(
    database: Database, clock: ManualClock
) -> None:
    async with running(run_group(make_desk(database, clock))) as group:
        await group.ask(TENANT, NewRun(handler="a"))
    with pytest.raises(Unavailable, match="the node stops"):
        await group.ask(TENANT, NewRun(handler="a"))


async def test_jobs_share_commits_too_and_a_taken_name_is_its_own_affair(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    names = ["a", "b", "a", "c"]
    async with running(job_group(desk, collect_seconds=0)) as group:
        jobs = await asyncio.gather(
            *(group.ask(TENANT, NewJob(definition=every(60), name=name)) for name in names),
            return_exceptions=True,
        )
    assert [isinstance(job, AlreadyExists) for job in jobs] == [False, False, True, False]
    rows = await fetch(database, "SELECT name FROM betimes.jobs ORDER BY 1")
    assert [row["name"] for row in rows] == ["a", "b", "c"]
