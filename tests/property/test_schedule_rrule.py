"""Recurrence rules against python-dateutil, in naive local time."""

from datetime import UTC, datetime, timedelta
from itertools import islice

from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from betimes.schedule.budget import Budget
from betimes.schedule.rrule import RuleClock
from betimes.schedule.rrule_rate import RuleRate
from betimes.schedule.rrule_syntax import read_rule
from betimes.schedule.zone import zone

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- a wall clock, as in the rules
WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
MICROSECONDS = 1_000_000


def numbers(*choices: int, most: int = 3) -> st.SearchStrategy[str]:
    lists = st.lists(st.sampled_from(choices), min_size=1, max_size=most, unique=True)
    return lists.map(lambda found: ",".join(map(str, found)))


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(
        st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"])
    )
    parts = {"FREQ": frequency, "INTERVAL": str(draw(st.sampled_from([1, 1, 2, 3, 7])))}

    def maybe(name: str, values: st.SearchStrategy[str], chance: int = 3) -> None:
        if draw(st.integers(1, chance)) == 1:
            parts[name] = draw(values)

    maybe("BYMONTH", numbers(*range(1, 13)))
    if frequency == "YEARLY":
        maybe("BYWEEKNO", numbers(2, 10, 20, 30, 51, -3, -20), 5)
        maybe("BYYEARDAY", numbers(1, 60, 100, 200, 366, -1, -366), 5)
    if frequency != "WEEKLY":
        maybe("BYMONTHDAY", numbers(1, 2, 13, 15, 28, 29, 30, 31, -1, -2, -31))
    if frequency == "MONTHLY" or (frequency == "YEARLY" and "BYWEEKNO" not in parts):
        # All numbered or none: dateutil reads a mixture as "both", against the RFC.
        numbered = [f"{nth}{day}" for nth in ("1", "2", "-1", "5") for day in WEEKDAYS]
        choices = draw(st.sampled_from([numbered, WEEKDAYS]))
        maybe("BYDAY", st.lists(st.sampled_from(choices), min_size=1, max_size=3).map(",".join))
    else:
        maybe("BYDAY", st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join))
    maybe("BYHOUR", numbers(0, 2, 9, 17, 23), 4)
    maybe("BYMINUTE", numbers(0, 15, 30, 59), 5)
    if len(parts) > 2 and frequency != "WEEKLY":
        maybe("BYSETPOS", numbers(1, 2, -1, -2, most=2), 4)
    maybe("WKST", st.sampled_from(["MO", "SU"]), 4)
    maybe("COUNT", st.integers(1, 20).map(str), 4)
    return ";".join(f"{name}={value}" for name, value in parts.items())


STARTS = st.datetimes(datetime(1999, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(second=0, microsecond=0)
)


def horizon(text: str) -> timedelta:
    """As far as dateutil, which visits every period, gets in reasonable time."""
    if "MINUTELY" in text:
        return timedelta(days=8)
    return timedelta(days=200 if "HOURLY" in text else 365 * 5)


def theirs(text: str, start: datetime, number: int) -> list[datetime]:
    return list(islice(rrulestr(text, dtstart=start), number))


def ours(text: str, start: datetime) -> list[datetime]:
    rule = read_rule(text)
    begin = int((start - EPOCH).total_seconds())
    end = begin + int(horizon(text).total_seconds())
    if rule.is_sub_daily:
        series = RuleRate(rule, begin, zone("UTC"), Budget())
        found = series.between((begin - 1) * MICROSECONDS, end * MICROSECONDS, 12, Budget())
        assert not found or series.count((begin - 1) * MICROSECONDS, found[-1], Budget()) == len(
            found
        )
        return [EPOCH + timedelta(microseconds=instant) for instant in found]
    clock = RuleClock(rule, begin, Budget())
    seconds = clock.between(begin - 1, end, 12, Budget())
    assert not seconds or clock.count(begin - 1, seconds[-1], Budget()) == len(seconds)
    return [EPOCH + timedelta(seconds=second) for second in seconds]


@given(text=rules(), start=STARTS)
def test_rules_agree_with_dateutil(text: str, start: datetime) -> None:
    """The first occurrences, one for one.

    Dateutil searches until the year 9999, period by period, so it is only asked for what we found.
    """
    found = ours(text, start)
    assume(found)
    assert found == theirs(text, start, len(found))


@given(start=STARTS, hours=st.integers(1, 50))
def test_a_filtered_rate_is_one_set(start: datetime, hours: int) -> None:
    """An hourly rule asked from later gives the rest of the same set."""
    rule = read_rule(f"FREQ=HOURLY;INTERVAL={hours};BYDAY=SA,SU")
    berlin = zone("Europe/Berlin")
    begin = int(start.replace(tzinfo=UTC).timestamp())
    series = RuleRate(rule, begin, berlin, Budget())
    all_of_them = series.between(begin * MICROSECONDS, 1 << 60, 10, Budget())
    for index, instant in enumerate(all_of_them[:-1]):
        assert series.next(instant, Budget()) == all_of_them[index + 1]
        assert series.next(instant + 1, Budget()) == all_of_them[index + 1]
