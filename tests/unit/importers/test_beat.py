"""Celery beat, by Celery's own objects."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule

from betimes.importers import compare
from betimes.importers.beat import Where, read_beat

AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def an_app(zone: str = BERLIN) -> Celery:
    app = Celery("proj")
    app.conf.timezone = zone
    return app


APP = an_app()
# The real one needs a library of astronomy; these are its attributes.
SUNSET = SimpleNamespace(event="sunset", lat=-37.8, lon=144.9)
CRONTABS: dict[str, tuple[dict[str, Any], str]] = {
    "every minute of an hour": ({"hour": 3}, "* 3 * * *"),
    "fixed": ({"minute": 30, "hour": 2}, "30 2 * * *"),
    "every hour": ({"minute": 30}, "30 * * * *"),
    "steps": ({"minute": 0, "hour": "*/3"}, "0 */3 * * *"),
    "hours": ({"minute": 30, "hour": "1,2,3"}, "30 1-3 * * *"),
    "both days must match": (
        {"minute": 0, "hour": 0, "day_of_month": 13, "day_of_week": "fri"}, "0 0 13 * 5"),
    "wrapping": ({"minute": 0, "hour": "22-2", "day_of_week": "fri-mon"},
                 "0 0,1,2,22,23 * * 0,1,5,6"),
    "names": ({"minute": 5, "hour": 4, "day_of_week": "mon-fri"}, "5 4 * * 1-5"),
    "quarters of a year": ({"minute": 0, "hour": 0, "day_of_month": 1, "month_of_year": "*/3"},
                           "0 0 1 */3 *"),
    "sunday": ({"minute": 0, "hour": 6, "day_of_week": "sunday"}, "0 6 * * 0"),
    "sets": ({"minute": {0, 10}, "hour": {6, 18}}, "0,10 6,18 * * *"),
}  # fmt: skip


@pytest.mark.parametrize("name", CRONTABS)
def test_crontabs_are_read_and_fire_as_beat_would_send_them(name: str) -> None:
    members, expression = CRONTABS[name]
    entries = {name: {"task": "t", "schedule": crontab(app=APP, **members)}}
    (verdict,) = read_beat(entries, Where(timezone=BERLIN))
    assert verdict.job is not None, verdict
    assert verdict.job["schedule"]["expr"] == expression
    comparison = compare(verdict, AFTER, UNTIL)
    assert comparison is not None
    assert comparison.until == UNTIL
    assert comparison.agrees, comparison
    assert comparison.ours > 0


def test_a_difference_is_found_where_there_is_one() -> None:
    """Beat sends one of two times that a jump skips together; here both are shifted."""
    entries = {"x": {"task": "t", "schedule": crontab(app=APP, minute="0,30", hour=2)}}
    comparison = compare(read_beat(entries, Where(timezone=BERLIN))[0], AFTER, UNTIL)
    assert comparison is not None
    assert not comparison.agrees
    assert comparison.extra == (datetime(2026, 3, 29, 1, 30, tzinfo=UTC),)
    assert comparison.missing == ()


def test_what_walks_is_followed_for_so_long_only() -> None:
    entries = {"x": {"task": "t", "schedule": crontab(app=an_app("UTC"))}}
    comparison = compare(read_beat(entries, Where())[0], AFTER, UNTIL)
    assert comparison is not None
    assert comparison.agrees
    assert comparison.theirs == 60_000
    assert comparison.until == AFTER + timedelta(minutes=60_000)


@pytest.mark.parametrize(
    ("entry", "every"),
    [(30, "PT30S"), (30.5, "PT30.5S"), (timedelta(minutes=5), "PT300S"),
     (schedule(run_every=90), "PT90S")],
)  # fmt: skip
def test_periods(entry: Any, every: str) -> None:
    (verdict,) = read_beat({"x": {"task": "t", "schedule": entry}}, Where())
    assert verdict.job is not None
    assert verdict.job["schedule"]["every"] == every
    assert "from the import" in verdict.warnings[0]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"task": "t", "schedule": SUNSET}, "solar events"),
        ({"task": "t", "schedule": object()}, "a schedule of its own kind"),
        ({"task": "t", "schedule": 0.1}, "at least a second"),
        ({"schedule": 5}, "an entry with a `task`"),
        ("nothing", "an entry with a `task`"),
        ({"task": "t", "schedule": 5, "args": [object()]}, "cannot be written as JSON"),
        ({"task": "t", "schedule": 5, "options": {"expires": AFTER}}, "expires as a number"),
        ({"task": "t", "schedule": True}, "a schedule of its own kind"),
    ],
)
def test_what_cannot_be_said_is_refused(entry: Any, reason: str) -> None:
    (verdict,) = read_beat({"x": entry}, Where())
    assert verdict.job is None
    assert reason in verdict.reason


def test_arguments_and_options() -> None:
    entry = {
        "task": "proj.tasks.add",
        "schedule": 60,
        "args": (1, 2),
        "kwargs": {"n": 3},
        "options": {
            "queue": "math",
            "expires": 15,
            "time_limit": 30,
            "priority": 12,
            "exchange": "e",
        },
    }
    (verdict,) = read_beat({"add": entry}, Where(queue="other", prefix="celery-"))
    job = verdict.job
    assert job is not None
    assert (job["name"], job["handler"], job["queue"]) == ("celery-add", "proj.tasks.add", "math")
    assert job["payload"] == {"args": [1, 2], "kwargs": {"n": 3}}
    assert (job["start_deadline"], job["timeout"], job["priority"]) == ("PT15S", "PT30S", 9)
    told = " ".join(verdict.warnings)
    assert "options not carried over: exchange" in told
    assert "arguments without names" in told
    named = read_beat({"x": {"task": "t", "schedule": 5, "kwargs": {"a": 1}}}, Where())[0].job
    assert named is not None
    assert named["payload"] == {"a": 1}
