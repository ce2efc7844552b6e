"""APScheduler 3, by its own objects and stores."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from betimes.cli.takeover import _store
from betimes.domain.errors import BadSchedule
from betimes.importers import Verdict, compare
from betimes.importers.apscheduler import Where, jobs_of, read_jobs

AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)
BERLIN = "Europe/Berlin"


@pytest.fixture
def scheduler() -> Iterator[BackgroundScheduler]:
    made = BackgroundScheduler(timezone=BERLIN)
    yield made
    if made.running:
        made.shutdown()


def cron(**members: Any) -> CronTrigger:
    return CronTrigger(**{"timezone": BERLIN, **members})


def read(scheduler: BackgroundScheduler, trigger: Any, **more: Any) -> Verdict:
    call = {"args": ["x"]} if not {"args", "kwargs"} & set(more) else {}
    scheduler.add_job("logging:debug", trigger, id="one", **call, **more)
    (verdict,) = read_jobs(jobs_of(scheduler), Where())
    return verdict


TRIGGERS = {
    "30 2 * * *": cron(hour=2, minute=30),
    "*/15 * * * *": cron(minute="*/15"),
    "0 9-17/2 * * mon,tue,wed,thu,fri": cron(day_of_week="0-4", hour="9-17/2"),
    "0 9 * * tue": CronTrigger.from_crontab("0 9 * * 1", timezone=BERLIN),
    "0 0 13 * fri": cron(day=13, day_of_week="fri"),
    "0 0 L * *": cron(day="last"),
    "0 5 * * fri#3": cron(day="3rd fri", hour=5),
    "0 5 15,L * fri#3": cron(day="3rd fri,15,last", hour=5),
    "0 5 * * monL": cron(day="last mon", hour=5),
    "*/20 0 3 * * *": cron(hour=3, minute=0, second="*/20"),
    "0 0 0 1 5 * 2026-2027": cron(year="2026-2027", month=5),
    "0 1 * * mon,wed,fri,sun": cron(day_of_week="*/2", hour=1),
    "0 4 * jan-mar *": cron(month="jan-mar", hour=4),
}


@pytest.mark.parametrize("expression", TRIGGERS)
def test_cron_is_read_and_fires_as_the_trigger_does(
    expression: str, scheduler: BackgroundScheduler
) -> None:
    verdict = read(scheduler, TRIGGERS[expression])
    assert verdict.job is not None, verdict
    assert verdict.job["schedule"]["expr"] == expression
    comparison = compare(verdict, AFTER, UNTIL)
    assert comparison is not None
    assert comparison.agrees, comparison
    assert comparison.ours > 0


@pytest.mark.parametrize(
    "trigger",
    [
        IntervalTrigger(minutes=7, start_date="2026-01-01 00:00:03", timezone=BERLIN),
        IntervalTrigger(days=1, start_date="2026-01-01 02:30:00", end_date="2026-06-01 00:00:00",
                        timezone=BERLIN),
        DateTrigger("2026-05-05 12:00:00", timezone=BERLIN),
        OrTrigger([cron(hour=3), cron(hour=5, minute=30)]),
        cron(hour=3, start_date="2026-03-01 00:00:00", end_date="2026-04-01 00:00:00"),
    ],
    ids=str,
)  # fmt: skip
def test_other_triggers_fire_the_same(trigger: Any, scheduler: BackgroundScheduler) -> None:
    comparison = compare(read(scheduler, trigger), AFTER, UNTIL)
    assert comparison is not None
    assert comparison.agrees, comparison


def test_a_difference_is_found_where_there_is_one(scheduler: BackgroundScheduler) -> None:
    """APScheduler skips a midnight that does not exist in Santiago; the rule says shifted."""
    comparison = compare(read(scheduler, cron(hour=0, timezone="America/Santiago")), AFTER, UNTIL)
    assert comparison is not None
    assert comparison.extra == (datetime(2026, 9, 6, 4, 0, tzinfo=UTC),)


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        (cron(week=3), "weeks of the year"),
        (AndTrigger([cron(hour=3), cron(day=1)]), "AndTrigger"),
        (cron(day="1st mon", day_of_week="mon-fri"), "cannot be said in cron"),
        (cron(month=2, day=30), "there is no such date"),
    ],
    ids=["week", "and", "nth and weekday", "never"],
)
def test_what_cannot_be_said_is_refused(
    trigger: Any, reason: str, scheduler: BackgroundScheduler
) -> None:
    verdict = read(scheduler, trigger)
    assert verdict.job is None
    assert reason in verdict.reason


def test_policies_of_a_job(scheduler: BackgroundScheduler) -> None:
    verdict = read(
        scheduler, cron(hour=1, jitter=30), kwargs={"msg": 1}, misfire_grace_time=60,
        coalesce=False, max_instances=3, name="nightly",
    )  # fmt: skip
    job = verdict.job
    assert job is not None
    assert (job["handler"], job["payload"]) == ("logging:debug", {"msg": 1})
    assert job["description"] == "nightly"
    assert job["schedule"]["catchup"] == {"policy": "all", "window": "PT60S"}
    assert (job["schedule"]["overlap"], job["schedule"]["jitter"]) == ("allow", "PT30S")
    assert job["concurrency"] == {"key": "one", "limit": 3, "on_limit": "skip"}
    assert job["start_deadline"] == "PT60S"
    assert "either way there" in " ".join(verdict.warnings)
    assert compare(verdict, AFTER, UNTIL) is None, "chance cannot be compared"


def test_arguments_must_be_json(scheduler: BackgroundScheduler) -> None:
    assert "as JSON" in read(scheduler, cron(hour=1), args=[object()]).reason


def test_paused_jobs_and_jobs_of_stores(scheduler: BackgroundScheduler) -> None:
    scheduler.add_jobstore(MemoryJobStore(), "more")
    scheduler.start(paused=True)
    scheduler.add_job("logging:debug", cron(hour=1), id="a", args=["x"])
    scheduler.add_job("logging:debug", cron(hour=1), id="b", args=["x"], jobstore="more").pause()
    found = {one.place: one.paused for one in read_jobs(jobs_of(scheduler), Where())}
    assert found == {"job a": False, "job b": True}
    scheduler.shutdown()
    store = MemoryJobStore()
    other = BackgroundScheduler(jobstores={"default": store})
    store.start(other, "default")
    assert jobs_of(store) == []
    assert jobs_of([1]) == [1]
    with pytest.raises(BadSchedule, match="a scheduler, a job store or a list"):
        jobs_of(object())


def kept(url: str) -> None:
    """A store on disk with a job that runs and one that is paused, left behind by a scheduler."""
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=url)}, timezone=BERLIN
    )
    scheduler.start(paused=True)
    scheduler.add_job("logging:debug", cron(hour=3), id="kept", args=["x"])
    scheduler.add_job("logging:debug", cron(hour=4), id="still", args=["x"]).pause()
    scheduler.shutdown()


def test_a_store_on_disk_is_read_without_starting_anything(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/jobs.sqlite"
    kept(url)
    scheduler = BackgroundScheduler(jobstores={"default": SQLAlchemyJobStore(url=url)})
    scheduler.add_job("logging:debug", cron(hour=5), id="pending", args=["x"])
    found = {one.place: one.paused for one in read_jobs(jobs_of(scheduler), Where(queue="q"))}
    assert found == {"job pending": False, "job kept": False, "job still": True}
    assert not scheduler.running
    by_url = read_jobs(jobs_of(_store(url)), Where(queue="q"))
    assert [one.job["queue"] for one in by_url if one.job] == ["q", "q"]


def test_objects_that_cannot_be_called_or_read() -> None:
    nameless = SimpleNamespace(id="a", func_ref=None, trigger=cron(hour=1))
    strange = SimpleNamespace(id="b", func_ref="m:f", trigger=object())
    reasons = [one.reason for one in read_jobs([nameless, strange], Where())]
    assert "no name that could be called" in reasons[0]
    assert "a trigger of its own kind" in reasons[1]
