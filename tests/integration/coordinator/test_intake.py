"""The coordinator's look into the intake: at once when it is told, else with its next beat."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from betimes.coordinator.intake import Intake
from betimes.domain.states import Shown
from betimes.ops.runs import get_run
from betimes.rhythm import Stopping
from betimes.store.intake import HINTS
from betimes.store.queries import load
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from far_kit import Trips, far_database, pass_time
from ops_kit import TENANT, KeptHints, make_desk
from store_kit import eventually, opened, owner
from tx_kit import ask, open_shop


@pytest.mark.parametrize("every", [timedelta(hours=1), timedelta(milliseconds=20)])
async def test_what_commits_is_made_whether_told_or_looked_for(dsn: str, every: timedelta) -> None:
    clock, recorder, stopping, hints = RealClock(), Recorder(), Stopping(), KeptHints()
    told = every > timedelta(minutes=1)
    async with (
        opened(dsn, clock=clock) as store,
        open_shop(dsn, store) as shop,
        owner(dsn) as ear,
        asyncio.TaskGroup() as group,
    ):
        desk = make_desk(store, clock, hints=hints)
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        intake = Intake(desk=desk, clock=clock, telemetry=telemetry, every=every, batch_max=3)
        if told:
            await ear.add_listener(HINTS, lambda *_: intake.nudge.set())
        group.create_task(intake.run(stopping))
        buyer = await asyncpg.connect(shop.dsn)
        async with buyer.transaction():
            runs = [(await ask(buyer, "one"))[0] for _ in range(7)]
        await buyer.close()

        async def all_made() -> bool:
            async with owner(dsn) as connection:
                made = await connection.fetchval("SELECT count(*) FROM betimes.runs")
            return bool(made == 7)

        await eventually(all_made, what="seven runs, three at a time")
        assert (await get_run(desk, TENANT, runs[0])).state is Shown.QUEUED
        stopping.request("the test is over")
    assert sum(event.measurements["runs"] for event in recorder.named("intake.tick")) == 7
    # Workers are told where to look.
    assert {hint[1:3] for hint in hints.hints} == {("default", TENANT)}


async def test_a_row_that_cannot_be_made_is_told(dsn: str) -> None:
    clock, recorder = RealClock(), Recorder()
    async with opened(dsn, clock=clock) as store, open_shop(dsn, store) as shop:
        buyer = await asyncpg.connect(shop.dsn)
        await ask(buyer, "one")
        await buyer.close()
        async with owner(dsn) as admin:
            await admin.execute("UPDATE betimes.intake SET queue = 'a:b'")
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        desk = make_desk(store, clock)
        intake = Intake(desk=desk, clock=clock, telemetry=telemetry, every=timedelta(seconds=1))
        assert (await intake.tick(), await intake.tick()) == (1, 0)
    (event,) = recorder.named("intake.refused")
    assert "colon" in str(event.metadata["why"])


async def test_it_rests_only_where_every_producer_notifies(dsn: str, clock: ManualClock) -> None:
    trips, stopping = Trips(), Stopping()
    look = load("intake")["find_intake"].text
    async with (
        owner(dsn) as other,
        far_database(dsn, clock, trips=trips) as database,
        asyncio.TaskGroup() as group,
    ):
        intake = Intake(
            desk=make_desk(database, clock),
            clock=clock,
            telemetry=Telemetry(clock=clock),
            every=timedelta(milliseconds=100),
        )
        task = group.create_task(intake.run(stopping))

        async def looks_in(seconds: float) -> int:
            before = trips.statements[look]
            await pass_time(clock, seconds, trips)
            return trips.statements[look] - before

        await looks_in(10)
        assert await looks_in(10) <= 11
        await other.execute(
            "INSERT INTO betimes.producers (role, tenant_id, hints) VALUES ('shop', $1, false)",
            TENANT,
        )
        await looks_in(12)
        assert await looks_in(10) >= 95
        stopping.request("seen")
        while not task.done():
            await pass_time(clock, 0.1, trips)
