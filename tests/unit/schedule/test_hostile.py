"""Hostile inputs: a clear error in bounded time and memory, never a hang."""

import tracemalloc
from time import perf_counter

import pytest

from betimes.domain.errors import Invalid
from betimes.schedule import Schedule, fire_times
from betimes.schedule.cron import CronClock
from facts_kit import parse, utc

NOW = utc("2026-01-01")
SECONDS_MAX = 5.0  # generous: a busy machine is not a hang
BYTES_MAX = 32_000_000

MEGABYTE = "1" * 1_000_000
NESTED: dict[str, object] = {"type": "cron", "expr": "* * * * *"}
for _ in range(500):
    NESTED = {"type": "union", "of": [NESTED]}

INPUTS: list[object] = [
    MEGABYTE,
    "*/" + MEGABYTE,
    ",".join(["*"] * 10_000) + " * * * *",
    "every " * 100_000,
    "@" * 100_000,
    "R/" * 100_000,
    "FREQ=" * 100_000,
    "FREQ=DAILY;BYHOUR=" + ",".join(["1"] * 10_000),
    "P" + "1D" * 100,
    "in " + "1h" * 200,
    "\0",
    "0 0 * * *\0",
    "\ud800 * * * *",
    "\u0661 * * * *",
    "9" * 5_000 + " * * * *",
    "* * * * * * * * * * * *",
    "every 99999999999999999999 minutes",
    "2026-01-01T00:00:00Z" * 100,
    "9999-12-31T23:59:59Z",
    "infinity",
    {"type": "cron", "expr": MEGABYTE},
    {"type": "cron", "expr": "* * * * *", "timezone": MEGABYTE},
    {"type": "cron", "expr": "* * * * *", "dialect": MEGABYTE},
    {"type": "cron", "expr": ["*"] * 5},
    {"type": "rrule", "expr": "FREQ=YEARLY;" * 1_000},
    {"type": "rrule", "expr": "DTSTART:20260101T000000Z\n" + "RDATE:20260101T000000Z\n" * 600},
    {"type": "text", "expr": "a" * 1_000_000},
    {"type": "interval", "every": float("nan")},
    {"type": "interval", "every": float("inf")},
    {"type": "interval", "every": 10**30},
    {"type": "interval", "every": "PT" + "9" * 200 + "S"},
    {"type": "union", "of": [{"type": "manual"}] * 1_000},
    {"type": "once", "at": MEGABYTE},
    {"type": MEGABYTE},
    {MEGABYTE: 1, "type": "cron", "expr": "* * * * *"},
    {"type": "cron", "expr": "* * * * *", "max_fires": 10**100},
    {"type": "cron", "expr": "* * * * *", "calendars": {"exclude": ["x"] * 100_000}},
    NESTED,
]


@pytest.mark.parametrize("source", INPUTS, ids=range(len(INPUTS)))
def test_hostile_inputs_are_refused_quickly(source: object) -> None:
    """Refused with a short sentence, within seconds and a few megabytes."""
    tracemalloc.start()
    begin = perf_counter()
    try:
        with pytest.raises(Invalid) as caught:
            parse(source, now=NOW)  # type: ignore[arg-type]
        taken = perf_counter() - begin
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < SECONDS_MAX
    assert peak < BYTES_MAX
    assert len(caught.value.sentence) < 1_000


@pytest.mark.parametrize(
    "source",
    [
        "0 0 29 2 +MON",
        "0 0 0 29 2 ? 2196",
        "0 0 * 2 MON#5",
        "59 59 23 31 12 ? 2199",
        "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=SECONDLY;INTERVAL=99999;BYMONTH=2;BYDAY=MO;BYHOUR=3;BYMINUTE=0",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "every P200Y from 1970-01-01T00:00",
        "R999999999/1970-01-01T00:00:00/P1D",
    ],
)
def test_rare_fires_are_found_or_denied_quickly(source: str) -> None:
    """Even the rarest date is one bounded search away."""
    begin = perf_counter()
    fire_times(source, "America/New_York", NOW, 3, kind="auto")
    assert perf_counter() - begin < SECONDS_MAX


def test_a_cron_question_looks_at_each_month_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest and the impossible question visits no month of our time twice."""
    seen: list[int] = []
    look = CronClock._days

    def counted(clock: CronClock, month: int) -> int:
        seen.append(month)
        return look(clock, month)

    monkeypatch.setattr(CronClock, "_days", counted)
    schedule = parse("0 0 0 29 2 ? 2196", timezone="Europe/Berlin")
    seen.clear()
    assert schedule.next(NOW) is not None
    assert len(seen) <= 2 * (2200 - 2026)
    seen.clear()
    assert schedule.next(utc("2196-03-01")) is None
    assert len(seen) <= 12


def test_stored_forms_are_checked_like_everything_else() -> None:
    """A row that somebody tampered with is refused, not believed."""
    with pytest.raises(Invalid):
        Schedule.from_dict({"type": "cron", "expr": "* * * * *", "surprise": 1})
    with pytest.raises(Invalid):
        Schedule.from_dict({"type": "interval", "every": "PT1H"})


def test_extreme_moments() -> None:
    """The ends of our time, and questions from beyond them."""
    for name in ("Pacific/Kiritimati", "Etc/GMT+12", "UTC"):
        schedule = parse("* * * * *", timezone=name)
        assert schedule.next(utc("2199-12-31T23:59:59")) is None
        assert schedule.count(utc("1960-01-01"), utc("1960-01-02")) == 1440
        assert len(list(schedule.fires(utc("2199-12-31T00:00"), limit=5000))) > 0
