"""Counts in closed form against walking, and sub-daily rules against a stopwatch and a wall clock.

`count`, `between` and `next` are written apart from each other, so they are held against each other
for every kind of hostile schedule; and rates with filters against an oracle that visits each period
with `zoneinfo`.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random  # noqa: TID251 -- from a seed that hypothesis chooses
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from betimes.domain.errors import Refused
from betimes.schedule import Budget, Schedule, parse
from betimes.schedule.moment import to_instant
from hostile_schedules import KINDS, NOW, generate

PLENTY = 5_000_000
DAY_US = 86_400_000_000
COUNTED = sorted(set(KINDS) - {"noise", "text"})
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
SECOND = timedelta(seconds=1)
END_OF_SEARCH = to_instant(datetime(2170, 1, 1, tzinfo=UTC))


def read(kind: str, seed: int) -> Schedule:
    try:
        members = generate(kind, Random(seed))
        return parse(members, now=NOW, timezone="UTC", seed="job", budget=Budget(PLENTY))
    except Refused:
        assume(False)
        raise


@settings(max_examples=120, deadline=None)
@given(
    kind=st.sampled_from(COUNTED),
    seed=st.integers(0, 1 << 32),
    day=st.integers(-400, 4_000),
    length=st.integers(1, 900),
    second=st.integers(0, 86_399),
)
def test_counting_agrees_with_walking(
    kind: str, seed: int, day: int, length: int, second: int
) -> None:
    """In spans of up to years, of which the first fires are listed."""
    schedule = read(kind, seed)
    series, budget = schedule.series, Budget(PLENTY)
    after = to_instant(NOW) + day * DAY_US + second * 1_000_000
    until = after + length * DAY_US
    found = series.between(after, until, 700, budget)
    if len(found) == 700:
        until = found[-1]
    assert found == sorted(set(found))
    assert all(after < instant <= until for instant in found)
    if series.counts_exactly or "roll" not in str(schedule.to_dict()):
        assert series.count(after, until, budget) == len(found)
    walked, cursor = [], after
    for _ in range(min(len(found), 60)):
        following = series.next(cursor, budget)
        assert following is not None
        walked.append(cursor := following)
    assert walked == found[: len(walked)]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["cron", "rrule", "rrule sub-daily", "rrule with dates", "interval"]),
    seed=st.integers(0, 1 << 32),
    number=st.integers(1, 3_000),
)
def test_max_fires_is_the_number_of_fires(kind: str, seed: int, number: int) -> None:
    """However the last one is found."""
    members = generate(kind, Random(seed)) | {"start_at": "2026-01-01T00:00:00Z"}
    members.pop("calendars", None)
    try:
        budget = Budget(PLENTY)
        plain = parse(
            {name: value for name, value in members.items() if name != "max_fires"},
            now=NOW, timezone="UTC", seed="job", budget=budget,
        )  # fmt: skip
        limited = parse(
            {**members, "max_fires": number}, now=NOW, timezone="UTC", seed="job", budget=budget
        )
    except Refused:
        assume(False)
        raise
    assume(not plain.is_fixed_delay)
    everything = plain.series.between(-(1 << 62), 1 << 62, number + 5, budget)
    found = limited.series.between(-(1 << 62), 1 << 62, number + 5, budget)
    assert found == everything[:number]


def by_hand(rule: dict[str, str], begin: datetime, zone: ZoneInfo, until: datetime) -> list[int]:
    """Every unit on a stopwatch, the parts inside it, positions, and what the wall clock reads."""
    unit = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}[rule["FREQ"]]
    local = begin.astimezone(zone)
    minutes = rule.get("BYMINUTE", f"{local.minute}").split(",") if unit == 3600 else ["0"]
    seconds = rule.get("BYSECOND", f"{local.second}").split(",") if unit > 1 else ["0"]
    inside = sorted({int(m) * 60 + int(s) for m in minutes for s in seconds})
    filters = {"BYHOUR": "%H", "BYMINUTE": "%M", "BYSECOND": "%S"}
    asked = [n for n in filters if n in rule and not (n == "BYMINUTE" and unit == 3600)]
    asked = [n for n in asked if not (n == "BYSECOND" and unit > 1)]
    cursor = begin - timedelta(seconds=(local.minute * 60 + local.second) % unit)
    found: list[int] = []
    while cursor <= until:
        kept = []
        for rest in inside:
            moment = (cursor + rest * SECOND).astimezone(UTC)
            wall = moment.astimezone(zone)
            if all(
                int(wall.strftime(filters[n])) in {int(v) for v in rule[n].split(",")}
                for n in asked
            ):
                kept.append(moment)
        if "BYSETPOS" in rule:
            places = {int(p) for p in rule["BYSETPOS"].split(",")}
            kept = [m for i, m in enumerate(kept) if i + 1 in places or i - len(kept) in places]
        found += [to_instant(m) for m in kept if begin <= m <= until]
        cursor += timedelta(seconds=unit * int(rule.get("INTERVAL", "1")))
    return found


def some(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=4)
    return numbers.map(lambda chosen: ",".join(str(one) for one in sorted(set(chosen))))


@settings(max_examples=60, deadline=None)
@given(
    frequency=st.sampled_from(["HOURLY", "MINUTELY", "SECONDLY"]),
    interval=st.sampled_from([1, 2, 3, 7, 25, 61, 97, 1_001]),
    parts=st.fixed_dictionaries(
        {},
        optional={
            "BYHOUR": some(0, 23),
            "BYMINUTE": some(0, 59),
            "BYSECOND": some(0, 59),
            "BYSETPOS": st.sampled_from(["1", "-1", "2", "1,-1", "3,-2"]),
        },
    ),
    zone=st.sampled_from(ZONES),
    start=st.sampled_from(["2026-03-28T20:15:20", "2026-10-24T22:45:00", "2026-04-04T03:20:00"]),
    count=st.none() | st.integers(1, 40),
)
def test_filtered_rates_agree_with_a_stopwatch(
    frequency: str,
    interval: int,
    parts: dict[str, str],
    zone: str,
    start: str,
    count: int | None,
) -> None:
    """Two days around a night on which clocks jump, with COUNT and BYSETPOS."""
    assume(frequency != "SECONDLY" or interval > 1)
    assume(parts.keys() != {"BYSETPOS"} and parts)
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    until = begin + timedelta(days=2)
    rule = {"FREQ": frequency, "INTERVAL": str(interval), **parts}
    expected = by_hand(rule, begin, ZoneInfo(zone), until)
    text = ";".join(f"{name}={value}" for name, value in rule.items())
    if count is not None:
        expected = expected[:count]
        text = f"{text};COUNT={count}"
    assume(expected)
    assume(count is None or len(expected) == count)
    budget = Budget(PLENTY)
    schedule = parse(
        {"type": "rrule", "expr": text, "anchor": f"{start}Z"}, timezone=zone, budget=budget
    )
    low, high = to_instant(begin) - 1, to_instant(until)
    assert schedule.series.between(low, high, 1 << 30, budget) == expected
    assert schedule.series.count(low, high, budget) == len(expected)
    if count is not None:
        assert schedule.series.next(expected[-1], budget) is None


@settings(max_examples=60, deadline=None)
@given(
    frequency=st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY"]),
    interval=st.integers(1, 5),
    days=st.lists(st.sampled_from(["MO", "TU", "WE", "FR", "SU"]), min_size=1, unique=True),
    places=st.none() | some(1, 5) | some(-5, -1),
    hours=some(0, 23),
    week_start=st.sampled_from(["MO", "SU", "WE"]),
    count=st.integers(1, 300),
)
def test_counts_of_longer_rules_agree_with_dateutil(
    frequency: str,
    interval: int,
    days: list[str],
    places: str | None,
    hours: str,
    week_start: str,
    count: int,
) -> None:
    """The last one of COUNT, with positions in every kind of period."""
    position = "" if places is None else f";BYSETPOS={places}"
    # In the first week dateutil counts positions from DTSTART on, not from the week's first day.
    assume(places is None or frequency != "WEEKLY" or week_start == "MO")
    rule = (
        f"FREQ={frequency};INTERVAL={interval};BYDAY={','.join(days)};BYHOUR={hours};BYMINUTE=0;"
        f"BYSECOND=0;WKST={week_start}{position};COUNT={count}"
    )
    start = datetime(2026, 3, 2)  # noqa: DTZ001 -- a wall clock, as dateutil takes it
    schedule = parsed(rule, start)
    found = schedule.series.between(-(1 << 62), 1 << 62, count + 1, Budget(PLENTY))
    # Dateutil searches until the year 9999, so it is only asked for what we found.
    theirs = islice(rrulestr(rule, dtstart=start), len(found))
    assert len(found) == count or found[-1] > END_OF_SEARCH
    assert found == [to_instant(moment.replace(tzinfo=UTC)) for moment in theirs]


def parsed(rule: str, start: datetime) -> Schedule:
    try:
        return parse({"type": "rrule", "expr": rule, "anchor": start.isoformat()})
    except Refused:
        assume(False)
        raise
