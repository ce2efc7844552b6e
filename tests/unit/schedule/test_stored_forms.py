# ruff: noqa: E501 -- a table: one schedule, one line
"""What is stored of a schedule, and how it is shown in one line."""

import pytest

from betimes.schedule import Schedule
from facts_kit import parse, utc

NOW = utc("2026-01-01T09:30:15.25")

# fmt: off
STORED: list[tuple[str | dict[str, object], dict[str, object], str]] = [
    ("0 9 * * *", {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC"}, "cron: 0 9 * * * @ UTC"),
    ("cron: 0 9 * * mon-fri", {"type": "cron", "expr": "0 9 * * MON-FRI", "dialect": "unix", "timezone": "UTC"}, "cron: 0 9 * * MON-FRI @ UTC"),
    ("0 9 * * * @ Europe/Berlin", {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "Europe/Berlin"}, "cron: 0 9 * * * @ Europe/Berlin"),
    ("@daily", {"type": "cron", "expr": "0 0 * * *", "dialect": "unix", "timezone": "UTC"}, "cron: 0 0 * * * @ UTC"),
    ("cron(0 10 * * ? *)", {"type": "cron", "expr": "0 10 * * ? *", "dialect": "aws", "timezone": "UTC"}, "cron[aws]: 0 10 * * ? * @ UTC"),
    ("rate(5 minutes)", {"type": "interval", "every": "PT5M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT5M from 2026-01-01T09:30:15Z @ UTC"),
    ("rate(1 hour)", {"type": "interval", "every": "PT1H", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT1H from 2026-01-01T09:30:15Z @ UTC"),
    ("rate(2 days)", {"type": "interval", "every": "PT48H", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT48H from 2026-01-01T09:30:15Z @ UTC"),
    ("at(2026-12-24T15:00:00)", {"type": "once", "at": "2026-12-24T15:00:00", "timezone": "UTC"}, "at 2026-12-24T15:00:00 @ UTC"),
    ("every 90m", {"type": "interval", "every": "PT1H30M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT1H30M from 2026-01-01T09:30:15Z @ UTC"),
    ("every 90m from 2026-01-01T00:00Z", {"type": "interval", "every": "PT1H30M", "anchor": "2026-01-01T00:00:00Z", "timezone": "UTC"}, "every PT1H30M from 2026-01-01T00:00:00Z @ UTC"),
    ("every P1M from 2026-01-31T09:00", {"type": "interval", "every": "P1M", "anchor": "2026-01-31T09:00:00", "timezone": "UTC"}, "every P1M from 2026-01-31T09:00:00 @ UTC"),
    ("@every 1h30m", {"type": "interval", "every": "PT1H30M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT1H30M from 2026-01-01T09:30:15Z @ UTC"),
    ("cron: @every 5m", {"type": "interval", "every": "PT5M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT5M from 2026-01-01T09:30:15Z @ UTC"),
    ("interval: P1D", {"type": "interval", "every": "P1D", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every P1D from 2026-01-01T09:30:15Z @ UTC"),
    ("every: 2h", {"type": "interval", "every": "PT2H", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT2H from 2026-01-01T09:30:15Z @ UTC"),
    ("PT15M", {"type": "interval", "every": "PT15M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT15M from 2026-01-01T09:30:15Z @ UTC"),
    ("P1D", {"type": "interval", "every": "P1D", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every P1D from 2026-01-01T09:30:15Z @ UTC"),
    ("R3/2026-01-31T00:00Z/P1M", {"type": "iso8601", "expr": "R3/2026-01-31T00:00Z/P1M", "timezone": "UTC"}, "R3/2026-01-31T00:00Z/P1M @ UTC"),
    (" R/2026-01-31T00:00Z/P1M ", {"type": "iso8601", "expr": "R/2026-01-31T00:00Z/P1M", "timezone": "UTC"}, "R/2026-01-31T00:00Z/P1M @ UTC"),
    ("iso8601: R/2026-01-31T00:00Z/P1M", {"type": "iso8601", "expr": "R/2026-01-31T00:00Z/P1M", "timezone": "UTC"}, "R/2026-01-31T00:00Z/P1M @ UTC"),
    ("FREQ=DAILY", {"type": "rrule", "expr": "FREQ=DAILY", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "FREQ=DAILY @ UTC"),
    ("rrule: FREQ=DAILY;COUNT=3", {"type": "rrule", "expr": "FREQ=DAILY;COUNT=3", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "FREQ=DAILY;COUNT=3 @ UTC"),
    ("DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY", {"type": "rrule", "expr": "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY", "timezone": "UTC"}, "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY @ UTC"),
    ("2026-12-24T15:00", {"type": "once", "at": "2026-12-24T15:00:00", "timezone": "UTC"}, "at 2026-12-24T15:00:00 @ UTC"),
    ("once: 2026-12-24T15:00+01:00", {"type": "once", "at": "2026-12-24T15:00:00+01:00", "timezone": "UTC"}, "at 2026-12-24T15:00:00+01:00 @ UTC"),
    ("at: 2026-12-24", {"type": "once", "at": "2026-12-24T00:00:00", "timezone": "UTC"}, "at 2026-12-24T00:00:00 @ UTC"),
    ("manual", {"type": "manual", "timezone": "UTC"}, "manual"),
    ("every day at 9:00", {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC"}, "cron: 0 9 * * * @ UTC"),
    ("text: tomorrow at 9:00", {"type": "once", "at": "2026-01-02T09:00:00", "timezone": "UTC"}, "at 2026-01-02T09:00:00 @ UTC"),
    ("in 2 hours", {"type": "once", "at": "2026-01-01T11:30:15.250000Z", "timezone": "UTC"}, "at 2026-01-01T11:30:15.250000Z @ UTC"),
    ("in 1 month", {"type": "once", "at": "2026-02-01T09:30:15.250000Z", "timezone": "UTC"}, "at 2026-02-01T09:30:15.250000Z @ UTC"),
    ("every day at 9:00 in Europe/Berlin", {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "Europe/Berlin"}, "cron: 0 9 * * * @ Europe/Berlin"),
    ("every day at 9:00 and 17:30", {"type": "union", "of": [{"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC"}, {"type": "cron", "expr": "30 17 * * *", "dialect": "unix", "timezone": "UTC"}], "timezone": "UTC"}, "union: (cron: 0 9 * * * @ UTC) | (cron: 30 17 * * * @ UTC)"),
    ("H H * * *", {"type": "cron", "expr": "H H * * *", "dialect": "unix", "timezone": "UTC"}, "cron: H H * * * @ UTC"),
    ({"type": "delay", "after": "P1D", "timezone": "Europe/Berlin"}, {"type": "once", "at": "2026-01-02T09:30:15.250000Z", "timezone": "Europe/Berlin"}, "at 2026-01-02T09:30:15.250000Z @ Europe/Berlin"),
    ({"type": "interval", "every": "5m", "mode": "fixed_delay"}, {"type": "interval", "every": "PT5M", "anchor": "2026-01-01T09:30:15Z", "mode": "fixed_delay", "timezone": "UTC"}, "PT5M after each end @ UTC"),
    ({"type": "interval", "every": "P1M", "anchor": "2026-01-31", "month_end": "skip"}, {"type": "interval", "every": "P1M", "anchor": "2026-01-31T00:00:00", "month_end": "skip", "timezone": "UTC"}, "every P1M from 2026-01-31T00:00:00 @ UTC"),
    ({"type": "cron", "expr": "22-2 9 * * *", "wrap": True}, {"type": "cron", "expr": "22-2 9 * * *", "dialect": "unix", "wrap": True, "timezone": "UTC"}, "cron: 22-2 9 * * * @ UTC"),
    ({"type": "cron", "expr": "0 9 13 * 5", "day_match": "and"}, {"type": "cron", "expr": "0 9 13 * 5", "dialect": "unix", "day_match": "and", "timezone": "UTC"}, "cron: 0 9 13 * 5 @ UTC"),
    ({"type": "cron", "expr": "0 9 * * *", "max_fires": 3}, {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC", "start_at": "2026-01-01T09:30:15.250000Z", "max_fires": 3}, "cron: 0 9 * * * @ UTC"),
    ({"type": "cron", "expr": "0 9 * * *", "start_at": "2026-02-01", "end_at": "2026-03-01T00:00Z", "max_fires": 3, "jitter": "30s", "window": "5m", "overlap": "allow", "pause_after_failures": 3, "catchup": {"policy": "all", "max": 5, "window": "2h"}, "dst": {"gap": "skip"}}, {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC", "start_at": "2026-02-01T00:00:00", "end_at": "2026-03-01T00:00:00Z", "max_fires": 3, "pause_after_failures": 3, "jitter": "PT30S", "window": "PT5M", "dst": {"gap": "skip"}, "catchup": {"policy": "all", "window": "PT2H", "max": 5}, "overlap": "allow"}, "cron: 0 9 * * * @ UTC"),
    ({"type": "interval", "every": "1h", "start_at": "2026-02-01"}, {"type": "interval", "every": "PT1H", "anchor": "2026-02-01T00:00:00", "timezone": "UTC", "start_at": "2026-02-01T00:00:00"}, "every PT1H from 2026-02-01T00:00:00 @ UTC"),
    ({"type": "rrule", "expr": "FREQ=DAILY", "start_at": "2026-02-01T08:00"}, {"type": "rrule", "expr": "FREQ=DAILY", "anchor": "2026-02-01T08:00:00", "timezone": "UTC", "start_at": "2026-02-01T08:00:00"}, "FREQ=DAILY @ UTC"),
    ({"type": "union", "of": ["0 9 * * *", {"type": "interval", "every": "1h"}], "timezone": "Europe/Berlin"}, {"type": "union", "of": [{"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "Europe/Berlin"}, {"type": "interval", "every": "PT1H", "anchor": "2026-01-01T09:30:15Z", "timezone": "Europe/Berlin"}], "timezone": "Europe/Berlin"}, "union: (cron: 0 9 * * * @ Europe/Berlin) | (every PT1H from 2026-01-01T09:30:15Z @ Europe/Berlin)"),
    ({"type": "text", "expr": "weekly", "accept_first": True}, {"type": "cron", "expr": "0 9 * * MON", "dialect": "unix", "timezone": "UTC"}, "cron: 0 9 * * MON @ UTC"),
    ({"type": "text", "expr": "every 45 minutes", "accept_first": True}, {"type": "interval", "every": "PT45M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT45M from 2026-01-01T09:30:15Z @ UTC"),
    ({"type": "iso8601", "expr": "R2/2026-01-31/P1M", "month_end": "skip"}, {"type": "iso8601", "expr": "R2/2026-01-31/P1M", "month_end": "skip", "timezone": "UTC"}, "R2/2026-01-31/P1M @ UTC"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": "none"}, {"type": "cron", "expr": "0 9 * * *", "dialect": "unix", "timezone": "UTC", "catchup": {"policy": "none", "window": "PT1H", "max": 100}}, "cron: 0 9 * * * @ UTC"),
    ({"type": "cron", "expr": "@every 5m", "dialect": "unix", "wrap": True, "day_match": "or"}, {"type": "interval", "every": "PT5M", "anchor": "2026-01-01T09:30:15Z", "timezone": "UTC"}, "every PT5M from 2026-01-01T09:30:15Z @ UTC"),
]
# fmt: on


@pytest.mark.parametrize(("source", "stored", "canonical"), STORED)
def test_stored_forms(
    source: str | dict[str, object], stored: dict[str, object], canonical: str
) -> None:
    """Nothing is left to a clock: read again, it is the same schedule."""
    schedule = parse(source, now=NOW, seed="job")
    again = Schedule.from_dict(stored, seed="job")

    assert schedule.to_dict() == stored
    assert schedule.canonical == canonical
    assert again == schedule
    assert again.key == schedule.key
    assert hash(again) == hash(schedule)
    assert again != Schedule.from_dict(stored, seed="another")
    after = [fire.nominal for fire in schedule.fires(NOW, limit=5)]
    assert [fire.nominal for fire in again.fires(NOW, limit=5)] == after


def test_members_that_leave_the_fires_alone_leave_the_key_alone() -> None:
    """Jitter, window, catch-up, overlap and pausing are no part of when."""
    plain = parse("0 9 * * *")
    more = {"jitter": "5s", "window": "5m", "catchup": "none", "overlap": "allow"}
    dressed = parse({"type": "cron", "expr": "0 9 * * *", **more, "pause_after_failures": 3})

    assert dressed.key == plain.key
    assert dressed != plain
    assert plain != "0 9 * * *"
    assert parse("H 9 * * *", seed="a").key != parse("H 9 * * *", seed="b").key
    assert repr(plain) == "Schedule('cron: 0 9 * * * @ UTC')"
