"""Cron against an implementation that walks the clock."""

from datetime import UTC, datetime, timedelta

from hypothesis import assume, example, given

from betimes.domain.errors import NeverFires
from betimes.schedule import Schedule, parse
from cron_kit import POLICIES, five_fields, near_changes, six_fields
from dumb_cron_kit import DumbCron

DAYS = timedelta(days=3)


def schedule_of(expression: str, zone: str, dst: dict[str, str] | None) -> Schedule:
    try:
        return parse({"type": "cron", "expr": expression}, timezone=zone, dst=dst)
    except NeverFires:
        assume(False)
        raise


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@given(expression=five_fields(), place=near_changes(), dst=POLICIES)
@example("30 2 * * *", ("Europe/Berlin", at("2026-03-28T12:00")), None)
@example("30 */2 * * *", ("America/St_Johns", at("2010-11-07T00:28")), None)
@example("0 12 30 12 *", ("Pacific/Apia", at("2011-12-29T10:00")), None)
@example("0 12 31 12 *", ("Pacific/Kiritimati", at("1994-12-30T10:00")), None)
@example("0 0 * * *", ("America/Santiago", at("2026-09-05T12:00")), None)
@example("*/10 * * * *", ("Australia/Lord_Howe", at("2026-04-04T12:00")), None)
@example("15 1,2 * * *", ("Antarctica/Casey", at("2020-10-03T12:00")), None)
@example("20-50/10 2 * * *", ("Europe/Berlin", at("2026-03-28T12:00")), {"gap": "shift"})
def test_minute_by_minute(
    expression: str, place: tuple[str, datetime], dst: dict[str, str] | None
) -> None:
    """Every fire in three days is what walking every minute of them finds."""
    zone, after = place
    after = after.replace(second=0)
    schedule = schedule_of(expression, zone, dst)

    found = [fire.nominal for fire in schedule.fires(after, after + DAYS)]

    assert found == DumbCron(expression).fires(zone, after, after + DAYS, dst)


@given(expression=six_fields(), place=near_changes(hours=2), dst=POLICIES)
@example("0 30 2 * * *", ("Europe/Berlin", at("2026-03-29T00:30")), None)
@example("*/20 59 1 * * *", ("Europe/Berlin", at("2026-03-29T00:30")), None)
def test_second_by_second(
    expression: str, place: tuple[str, datetime], dst: dict[str, str] | None
) -> None:
    """Every fire in an hour is what walking every second of it finds, real time only.

    Gap and overlap are walked for the wild ones; a fixed job is compared by its minutes above.
    """
    zone, after = place
    schedule = schedule_of(expression, zone, dst)
    until = after + timedelta(hours=1)
    real_time = {"gap": "skip", "overlap": "both"}

    found = [f.nominal for f in schedule_of(expression, zone, real_time).fires(after, until)]

    assert found == DumbCron(expression).fires(zone, after, until, real_time)
    assert [fire.nominal for fire in schedule.fires(after, until)] == [
        fire for fire in walked(schedule, after, until) if after < fire <= until
    ]


def walked(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    """The same set, asked for from two days earlier."""
    return [
        fire.nominal for fire in schedule.fires(after - timedelta(days=1), until, limit=200_000)
    ]


@given(expression=five_fields(), place=near_changes(), dst=POLICIES)
def test_a_seconds_field_of_zero_changes_nothing(
    expression: str, place: tuple[str, datetime], dst: dict[str, str] | None
) -> None:
    """`0 30 2 * * *` is `30 2 * * *`, wild or fixed, with any policy."""
    zone, after = place
    five = schedule_of(expression, zone, dst)
    six = schedule_of(f"0 {expression}", zone, dst)

    assert list(six.fires(after, limit=20)) == list(five.fires(after, limit=20))
