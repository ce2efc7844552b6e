"""Rolling, checked against moving every fire by hand."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from betimes.schedule import Budget, Calendar, Schedule
from betimes.schedule.moment import to_datetime
from facts_kit import parse, utc

BERLIN = ZoneInfo("Europe/Berlin")
CLOSED = Calendar.of("closed", ["2026-03-29", "2026-10-23/2026-10-25"], ["sun"])
DAY = timedelta(days=1)


def rolling(expression: str, roll: str) -> Schedule:
    members = {"exclude": ["closed"], "roll": roll}
    return parse(
        {"type": "cron", "expr": expression, "calendars": members},
        timezone="Europe/Berlin",
        calendars={"closed": CLOSED},
    )


def is_closed(day: date) -> bool:
    closed = (date(2026, 10, 23), date(2026, 10, 24))
    return day.isoweekday() == 7 or day in closed


def target(day: date, roll: str) -> date:
    """The nearest open date on the sides that a policy allows; the earlier of two."""
    for distance in range(1, 32):
        sides = {"previous": (-1,), "next": (1,), "nearest": (-1, 1)}[roll]
        for side in sides:
            if not is_closed(day + side * distance * DAY):
                return day + side * distance * DAY
    raise AssertionError


def by_hand(expression: str, roll: str, after: datetime, until: datetime) -> list[datetime]:
    """Every fire of the plain schedule, those on closed dates moved as a wall clock reading."""
    plain = parse(expression, timezone="Europe/Berlin")
    found = set()
    for fire in plain.fires(after - 9 * DAY, until + 9 * DAY, limit=100_000):
        local = fire.nominal.astimezone(BERLIN)
        if is_closed(local.date()):
            day = target(local.date(), roll)
            local = datetime.combine(day, local.time().replace(fold=0), BERLIN)
        found.add(local.astimezone(UTC))
    return sorted(moment for moment in found if after < moment <= until)


@pytest.mark.parametrize("roll", ["previous", "next", "nearest"])
@pytest.mark.parametrize("expression", ["*/10 * * * *", "30 */2 * * *", "*/7 1-3 * * SUN"])
@pytest.mark.parametrize(
    ("after", "until"),
    [("2026-03-28T22:00", "2026-03-30T03:00"), ("2026-10-24T22:00", "2026-10-26T03:00")],
)
def test_dense_and_sparse_schedules_roll_alike(
    expression: str, roll: str, after: str, until: str
) -> None:
    """Over both changes of the clock; asked one by one, as a list, and counted."""
    span = utc(after), utc(until)
    schedule = rolling(expression, roll)
    expected = by_hand(expression, roll, *span)

    assert [fire.nominal for fire in schedule.fires(*span, limit=10_000)] == expected
    first, last = (round(moment.timestamp()) * 1_000_000 for moment in span)
    assert [to_datetime(instant) for instant in schedule.instants(first, last)] == expected
    assert [to_datetime(instant) for instant in schedule.instants(first, last, 3)] == expected[:3]


@pytest.mark.parametrize("expression", ["* * * * *", "* * * * * *", "*/5 * * * *"])
@pytest.mark.parametrize("roll", ["previous", "next", "nearest"])
def test_what_fires_all_the_time_goes_on_after_a_closed_date(expression: str, roll: str) -> None:
    """From Saturday's last moment to Monday's first; the rolled ones meet others there."""
    schedule = rolling(expression, roll)
    plain = rolling(expression, "none")
    fire = schedule.next(utc("2026-01-03T22:59:59"))
    year = utc("2026-01-01"), utc("2027-01-01")

    assert fire is not None
    assert fire.local.isoformat() == "2026-01-05T00:00:00+01:00"
    assert fire.flags == ()
    # A year of rolling dates is more than one evaluation may cost: here only the sum matters.
    assert schedule.count(*year, budget=Budget(100_000)) == plain.count(*year)


def test_a_dense_schedule_far_away() -> None:
    """Found without looking at every date until then; and its end is found too."""
    schedule = rolling("0 * * * * * 2040", "next")
    first, last = schedule.next(utc("2026-01-01")), utc("2041-01-02")

    assert first is not None
    assert first.local.isoformat() == "2040-01-02T00:00:00+01:00"
    assert schedule.next(last) is None
