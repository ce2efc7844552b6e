"""Calendar periods against a walk with the standard library."""

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.schedule import parse, zone
from betimes.schedule.duration import Duration, read_duration
from betimes.schedule.moment import moment_text, read_moment
from cron_kit import near_changes
from dumb_cron_kit import zone_info

STARTS = st.datetimes(datetime(1990, 1, 1), datetime(2020, 1, 1)).map(  # noqa: DTZ001 -- wall clocks
    lambda moment: moment.replace(microsecond=0)
)
DURATIONS = st.builds(
    Duration,
    st.sampled_from([0, 1, 1, 3, 12]),
    st.sampled_from([0, 1, 7]),
    st.sampled_from([0, 0, 3_600_000_000 * 12]),
).filter(lambda found: not found.is_elapsed)


def added(start: datetime, duration: Duration, k: int, name: str) -> datetime:
    """Start + k x duration, one step at a time, as the standard library reads the wall clock."""
    months = start.month - 1 + k * duration.months
    year, month = start.year + months // 12, months % 12 + 1
    day = min(start.day, monthrange(year, month)[1])
    local = start.replace(year=year, month=month, day=day) + timedelta(days=k * duration.days)
    instant = local.replace(tzinfo=zone_info(name)).astimezone(UTC)
    return instant + k * timedelta(microseconds=duration.micros)


@given(start=STARTS, duration=DURATIONS, place=near_changes())
def test_periods_are_multiples(
    start: datetime, duration: Duration, place: tuple[str, datetime]
) -> None:
    """The k-th occurrence is the start plus k durations, shifted out of gaps, first of overlaps."""
    name = place[0]
    if name in ("Pacific/Apia", "Pacific/Kiritimati", "Pacific/Kwajalein"):
        return  # where a date is missing, two multiples are one instant
    schedule = parse(f"every {duration} from {start.isoformat()}", timezone=name)
    begin = added(start, duration, 0, name) - timedelta(seconds=1)

    found = [fire.nominal for fire in schedule.fires(begin, limit=8)]

    assert found == [added(start, duration, k, name) for k in range(8)]


@given(start=STARTS, duration=DURATIONS, place=near_changes())
def test_the_first_after_any_moment(
    start: datetime, duration: Duration, place: tuple[str, datetime]
) -> None:
    """Asked from anywhere, the guess and the walk from the first occurrence agree."""
    name, after = place
    schedule = parse(f"every {duration} from {start.isoformat()}", timezone=name)
    k = 0
    while added(start, duration, k, name) <= after:
        k += max(1, int((after - added(start, duration, k, name)).days / 400))
    while k and added(start, duration, k - 1, name) > after:
        k -= 1

    found = schedule.next(after)

    assert found is not None
    assert found.nominal == added(start, duration, k, name)


@given(months=st.integers(0, 30), days=st.integers(0, 400), micros=st.integers(0, 10**12))
def test_durations_read_what_they_write(months: int, days: int, micros: int) -> None:
    """The canonical text of a duration reads back as itself."""
    duration = Duration(months, days, micros)
    assert read_duration(str(duration)) == duration


@given(moment=st.datetimes(datetime(1970, 1, 1), datetime(2199, 1, 1)))  # noqa: DTZ001 -- as above
def test_moments_read_what_they_write(moment: datetime) -> None:
    """So does a moment, with or without an offset."""
    for offset in ("", "Z", "+05:30", "-03:30"):
        found = read_moment(moment.isoformat() + offset)
        assert read_moment(moment_text(found)) == found


@given(place=near_changes())
def test_instants_and_wall_clocks_are_inverse(place: tuple[str, datetime]) -> None:
    """What the wall clock reads at an instant is a reading of that instant."""
    name, moment = place
    second = int(moment.timestamp())
    assert second in zone(name).instants(zone(name).local(second))
