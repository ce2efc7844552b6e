"""The calendar in whole numbers against the one of the standard library."""

from datetime import date, timedelta

import pytest

from betimes.schedule.civil import (
    MONTH_END,
    MONTH_STARTS,
    _first_day,
    date_of,
    day_of,
    month_length,
    month_number,
    month_of,
    weekday_of,
)

FIRST, LAST = date(1801, 1, 1), date(2203, 12, 31)


def test_every_month_of_four_centuries() -> None:
    """Its number, its first and its last day, its length."""
    for year in range(FIRST.year, LAST.year + 1):
        for month in range(1, 13):
            number = month_number(year, month)
            first = day_of(year, month, 1)
            after = day_of(year + month // 12, month % 12 + 1, 1)
            assert MONTH_STARTS[number] == _first_day(number) == first
            assert {month_of(day) for day in range(first, after)} == {number}
            assert month_length(number) == after - first
    assert month_number(LAST.year + 1, 1) == MONTH_END


@pytest.mark.parametrize("text", ["1801-01-01", "1969-12-31", "1970-01-01", "2000-02-29"])
def test_days_have_dates_and_weekdays(text: str) -> None:
    """There and back; weekdays count from Sunday."""
    expected = date.fromisoformat(text)
    day = day_of(expected.year, expected.month, expected.day)
    assert date(1970, 1, 1) + timedelta(days=day) == expected == date_of(day)
    assert weekday_of(day) == expected.isoweekday() % 7
