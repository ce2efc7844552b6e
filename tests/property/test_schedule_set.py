"""The fire set is one set: next, fires and count look at it from different sides."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from betimes.domain.errors import NeverFires
from betimes.schedule import Schedule, parse
from betimes.schedule.moment import to_instant
from cron_kit import POLICIES, five_fields, near_changes

NOW = datetime(2010, 1, 31, 2, 30, tzinfo=UTC)
KINDS = st.one_of(
    five_fields().map(lambda expr: {"type": "cron", "expr": expr}),
    st.sampled_from(
        [
            {"type": "interval", "every": "PT90M"},
            {"type": "interval", "every": "P1D"},
            {"type": "interval", "every": "P1M", "anchor": "2010-01-31T02:30:00"},
            {"type": "interval", "every": "P1M", "month_end": "skip"},
            {"type": "interval", "every": "P1DT12H"},
            {"type": "iso8601", "expr": "R4000/2010-01-31T02:30:00/P1D"},
            {"type": "rrule", "expr": "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30"},
            {"type": "rrule", "expr": "FREQ=MONTHLY;BYDAY=MO,TU,WE;BYSETPOS=-1"},
            {"type": "rrule", "expr": "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO;COUNT=500"},
            {"type": "rrule", "expr": "FREQ=HOURLY;INTERVAL=5;BYDAY=SA,SU"},
            {"type": "union", "of": [{"type": "cron", "expr": "0 2 * * *"}, "every PT7H"]},
        ]
    ),
)


def read(members: dict[str, object], zone: str, dst: dict[str, str] | None) -> Schedule:
    try:
        return parse(members, timezone=zone, now=NOW, dst=dst)
    except NeverFires:
        assume(False)
        raise


@given(members=KINDS, place=near_changes(), dst=POLICIES, hours=st.integers(1, 60))
def test_where_one_starts_asking_does_not_matter(
    members: dict[str, object],
    place: tuple[str, datetime],
    dst: dict[str, str] | None,
    hours: int,
) -> None:
    """The first fire after any moment is the least of the set beyond it."""
    zone, after = place
    schedule = read(members, zone, dst)
    begin = after - timedelta(hours=hours)
    later = [fire.nominal for fire in schedule.fires(begin, after + timedelta(days=3), 20_000)]

    expected = next((fire for fire in later if fire > after), None)

    found = schedule.next(after)
    if expected is None:
        assert found is None or found.nominal > after + timedelta(days=3)
    else:
        assert found is not None
        assert found.nominal == expected


@given(members=KINDS, place=near_changes(), dst=POLICIES, hours=st.integers(0, 200))
def test_between_and_count_agree_with_next(
    members: dict[str, object],
    place: tuple[str, datetime],
    dst: dict[str, str] | None,
    hours: int,
) -> None:
    """Listing, counting and stepping give the same instants, in strictly rising order."""
    zone, after = place
    schedule = read(members, zone, dst)
    until = after + timedelta(hours=hours)
    stepped = [to_instant(fire.nominal) for fire in schedule.fires(after, until, 100_000)]

    assert schedule.instants(to_instant(after), to_instant(until), 100_000) == stepped
    assert schedule.count(after, until) == len(stepped)
    assert all(left < right for left, right in itertools.pairwise(stepped))


@given(members=KINDS, place=near_changes(), dst=POLICIES)
def test_the_stored_form_means_the_same(
    members: dict[str, object], place: tuple[str, datetime], dst: dict[str, str] | None
) -> None:
    """A schedule read back from its stored form is equal and fires at the same times."""
    zone, after = place
    schedule = read(members, zone, dst)

    again = Schedule.from_dict(schedule.to_dict())

    assert again == schedule
    assert again.key == schedule.key
    assert list(again.fires(after, limit=5)) == list(schedule.fires(after, limit=5))
