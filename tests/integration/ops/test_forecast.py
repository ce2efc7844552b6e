"""The load ahead of real jobs, by group, with what spreading would change."""

from datetime import UTC, datetime, timedelta

import pytest

from betimes.domain.errors import Invalid
from betimes.domain.job import Definition
from betimes.ops import NewJob, create_job
from betimes.ops.forecast import Added, Asked, Changes, forecast, what_if
from betimes.ops.forecast_sample import sample_percent
from betimes.schedule import parse
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import HOUR, MINUTE, OTHER, TENANT, add_tenant, every, fetch, make_desk

MIDNIGHT = datetime(2026, 5, 2, tzinfo=UTC)


def daily(**changes: object) -> Definition:
    read = parse({"type": "cron", "expr": "0 0 * * *", "timezone": "UTC"})
    return Definition(**{"schedule": read.to_dict(), "handler": "noop", **changes})  # type: ignore[arg-type]


async def test_fires_per_minute_hot_midnight_and_advice(database: Database) -> None:
    clock = ManualClock(MIDNIGHT - HOUR)
    desk = make_desk(database, clock)
    for _ in range(30):
        await create_job(desk, TENANT, NewJob(definition=daily(queue="reports")))
    await create_job(desk, TENANT, NewJob(definition=every(30, queue="pulse")))
    asked = Asked(start=MIDNIGHT - HOUR, end=MIDNIGHT + HOUR, step=MINUTE, by="queue")
    told = await forecast(desk, TENANT, asked)
    assert (told.exact, told.sampled) == (True, None)
    fires = {group.label: group.fires for group in told.groups}
    assert set(fires) == {"reports", "pulse"}
    assert set(fires["pulse"]) == {2.0}
    assert (sum(fires["reports"]), fires["reports"][60]) == (30.0, 30.0)
    (spot,) = told.hot
    assert (spot.at, spot.fires, spot.top[0].fires) == (MIDNIGHT, 32.0, 30.0)
    (advice,) = told.advice
    assert (advice.before, advice.after, advice.jitter) == (32.0, 5.0, timedelta(minutes=10))


async def test_each_tenant_sees_its_own_and_the_service_sees_all(database: Database) -> None:
    clock = ManualClock(MIDNIGHT)
    await add_tenant(database)
    desk = make_desk(database, clock)
    await create_job(desk, TENANT, NewJob(definition=every(60)))
    await create_job(desk, OTHER, NewJob(definition=every(30)))
    asked = Asked(start=MIDNIGHT, end=MIDNIGHT + HOUR, step=HOUR)
    assert [sum(one.fires) for one in (await forecast(desk, OTHER, asked)).groups] == [120.0]
    by_tenant = Asked(start=MIDNIGHT, end=MIDNIGHT + HOUR, step=HOUR, by="tenant")
    whole = await forecast(desk, None, by_tenant)
    assert {one.label: sum(one.fires) for one in whole.groups} == {
        str(TENANT): 60.0,
        str(OTHER): 120.0,
    }


async def test_what_if_changes_nothing_but_the_answer(database: Database) -> None:
    clock = ManualClock(MIDNIGHT)
    desk = make_desk(database, clock)
    first = await create_job(desk, TENANT, NewJob(definition=every(60)))
    second = await create_job(desk, TENANT, NewJob(definition=every(60)))
    asked = Asked(start=MIDNIGHT, end=MIDNIGHT + HOUR, step=HOUR)
    changes = Changes(
        add=[Added(label="", schedule=every(1).schedule, jobs=2)],
        remove=[first.id],
        change=[(second.id, every(30).schedule)],
        slots=7,
    )
    before, after = await what_if(desk, TENANT, asked, changes)
    assert sum(before.groups[0].fires) == 120.0
    assert sum(after.groups[0].fires) == 7200.0 + 120.0
    assert after.groups[0].slots == 7
    assert len(await fetch(database, "SELECT id FROM betimes.jobs")) == 2


async def test_a_sample_of_the_table_scales_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(MIDNIGHT)
    desk = make_desk(database, clock)
    for _ in range(20):
        await create_job(desk, TENANT, NewJob(definition=every(60)))
    monkeypatch.setattr("betimes.ops.forecast.sample_percent", lambda *_: 100.0)
    asked = Asked(start=MIDNIGHT, end=MIDNIGHT + HOUR, step=HOUR)
    told = await forecast(desk, TENANT, asked)
    assert (told.exact, told.sampled, sum(told.groups[0].fires)) == (False, 1.0, 1200.0)


def test_how_much_of_the_table_is_read() -> None:
    assert sample_percent(5, 10_000_000.0) is None
    assert sample_percent(None, -1.0) is None
    assert sample_percent(None, 10_000_000.0) == 4.0
    assert sample_percent(200_001, 10_000_000.0) == 4.0
    assert sample_percent(200_001, 300_000.0) == 100.0


@pytest.mark.parametrize(
    ("span", "step", "pointer"),
    [
        (timedelta(0), MINUTE, "/to"),
        (timedelta(days=32), HOUR, "/to"),
        (HOUR, timedelta(milliseconds=1), "/step"),
        (timedelta(days=30), MINUTE, "/step"),
    ],
)
def test_spans_that_make_no_sense_are_refused(
    span: timedelta, step: timedelta, pointer: str
) -> None:
    with pytest.raises(Invalid) as refused:
        Asked(start=MIDNIGHT, end=MIDNIGHT + span, step=step)
    assert refused.value.pointer == pointer
