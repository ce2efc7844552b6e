"""The models of other programs, held against programs that share nothing with them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim

from betimes.domain.errors import BadSchedule
from betimes.importers import robfig, vixie
from betimes.importers.fields import PLACES, ROBFIG, VIXIE, read_field
from betimes.importers.walls import segments
from dumb_cron_kit import DumbCron, zone_info

ZONES = ("Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Beirut", "UTC",
         "Africa/Casablanca", "Australia/Sydney")  # fmt: skip
EXPRESSIONS = (
    "30 2 * * *", "0,30 2 * * *", "30 1,2,3 * * *", "30 * * * *", "*/30 2 * * *", "0 */2 * * *",
    "0 0 * * *", "15 0 * * 0", "0 0 13 * 5", "0 0 */2 * 1", "59 23 31 12 *", "5 4 * * sun",
    "*/7 1-3 1-10 3,10 *", "0 3 * jan-mar mon-fri",
)  # fmt: skip
AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


def by_cronsim(expression: str, zone: str) -> set[datetime]:
    local = AFTER.astimezone(zone_info(zone))
    found: set[datetime] = set()
    for moment in CronSim(expression, local):
        instant = moment.astimezone(UTC)
        if instant > UNTIL:
            return found
        found.add(instant)
    return found


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_vixie_beside_cronsim(expression: str, zone: str) -> None:
    model = vixie.model(vixie.read_expression(expression), zone)
    assert set(model(AFTER, UNTIL)) == by_cronsim(expression, zone)


def by_walking(expression: str, zone: str) -> list[datetime]:
    """Every minute of the weeks around each change, looked at one by one."""
    dumb, info = DumbCron(expression.upper()), zone_info(zone)
    found = []
    for begin, end in weeks(zone):
        moment = begin + timedelta(minutes=1)
        while moment <= end:
            if dumb.matches(moment.astimezone(info)):
                found.append(moment)
            moment += timedelta(minutes=1)
    return found


def weeks(zone: str) -> Iterable[tuple[datetime, datetime]]:
    parts = segments(zone_info(zone), AFTER, UNTIL)
    changes = [(part.first - part.offset).replace(tzinfo=UTC) for part in parts[1:]]
    for change in changes or [datetime(2026, 3, 1, tzinfo=UTC)]:
        yield change - timedelta(days=2), change + timedelta(days=2)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", [one for one in EXPRESSIONS if "*/2 * 1" not in one])
def test_robfig_is_every_minute_whose_clock_matches(expression: str, zone: str) -> None:
    model = robfig.model(robfig.read_expression(expression), zone)
    found = [moment for begin, end in weeks(zone) for moment in model(begin, end)]
    assert found == by_walking(expression, zone)


def test_a_fixed_job_is_started_once_for_each_minute_that_was_skipped() -> None:
    model = vixie.model(vixie.read_expression("20-50/10 2 * * *"), "Europe/Berlin")
    day = list(model(datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)))
    assert day == [datetime(2026, 3, 29, 1, 0, tzinfo=UTC)] * 4


def test_segments_of_a_year() -> None:
    parts = segments(zone_info("Australia/Lord_Howe"), AFTER, UNTIL)
    assert [part.offset for part in parts] == [
        timedelta(hours=11), timedelta(hours=10.5), timedelta(hours=11),
    ]  # fmt: skip
    assert parts[1].first - parts[0].last == timedelta(minutes=-30)
    assert parts[2].first - parts[1].last == timedelta(minutes=30)


@pytest.mark.parametrize(
    ("text", "place", "grammar", "values"),
    [
        ("*", 0, VIXIE, set(range(60))),
        ("*/20", 0, VIXIE, {0, 20, 40}),
        ("5-7", 4, VIXIE, {5, 6, 0}),
        ("0-7", 4, VIXIE, set(range(7))),
        ("sun,3", 4, VIXIE, {0, 3}),
        ("10/20", 0, ROBFIG, {10, 30, 50}),
        ("?", 2, ROBFIG, set(range(1, 32))),
        ("DEC", 3, ROBFIG, {12}),
        ("1-31/10", 2, VIXIE, {1, 11, 21, 31}),
    ],
)
def test_fields_hold_their_numbers(
    text: str, place: int, grammar: object, values: set[int]
) -> None:
    assert read_field(text, PLACES[place], grammar).values == values  # type: ignore[arg-type]


def test_stars_by_program() -> None:
    assert read_field("*/2", PLACES[2], VIXIE).star
    assert not read_field("*/2", PLACES[2], ROBFIG).star
    assert read_field("*/1", PLACES[2], ROBFIG).star
    assert not read_field("5,*", PLACES[2], VIXIE).star
    assert read_field("5,*", PLACES[2], ROBFIG).star


def test_steps_and_periods_have_bounds() -> None:
    with pytest.raises(BadSchedule, match="never comes to an end"):
        read_field("*/00", PLACES[0], VIXIE)
    assert robfig.every_seconds("@every 90s") == 90
    assert robfig.every_seconds("@every 1.5h") == 5400
    assert robfig.every_seconds("@every") is None
    assert robfig.every_seconds("@every -5m") is None
