"""What may stand in a cron expression, and the sentence for what may not."""

import pytest

from betimes.domain.errors import BadSchedule, NeverFires, TooLarge
from betimes.schedule import parse
from betimes.schedule.cron import read_cron
from facts_kit import days, fire_times, utc

SAME = [
    ("0 0 * * 0", "0 0 * * 7"),
    ("0 0 * * SUN", "0 0 * * 7"),
    ("0 0 * * sun", "0 0 * * 0"),
    ("0 0 * * SAT-SUN", "0 0 * * 6,0"),
    ("0 0 * * MON-SUN", "0 0 * * 0-6"),
    ("0 0 * * MON-5", "0 0 * * 1-5"),
    ("0 0 * * 5-7", "0 0 * * 5,6,0"),
    ("0 0 * * SUN-TUE", "0 0 * * 0-2"),
    ("0 0 * * SUN-SUN", "0 0 * * 0"),
    ("0 0 * * 1/2", "0 0 * * 1,3,5"),
    ("0 0 * * 7/2", "0 0 * * 0"),
    ("0 0 * * */2", "0 0 * * 0,2,4,6"),
    ("0 0 * jan,MAR *", "0 0 * 1,3 *"),
    ("0 0 * OCT-12 *", "0 0 * 10,11,12 *"),
    ("13-13 * * * *", "13 * * * *"),
    ("5/15 * * * *", "5,20,35,50 * * * *"),
    ("*/60 * * * *", "0 * * * *"),
    ("10-20/60 * * * *", "10 * * * *"),
    ("00 09 * * *", "0 9 * * *"),
    ("0 0 */2 * *", "0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * *"),
    ("0 0 ? * ?", "0 0 * * *"),
    ("0 0 1 * ?", "0 0 1 * *"),
    ("\t0   0\t* * *  ", "0 0 * * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
    ("0 0 12 * * *", "0 12 * * *"),
    ("0 0 12 * * * *", "0 12 * * *"),
    ("0 0 0 1 1 * 1970/4", "0 0 0 1 1 * */4"),
    ("0 0 0 1 1 * 2028,2030", "0 0 0 1 1 * 2028-2030/2"),
    ("0 0 * * FRI#L", "0 0 * * 5L"),
    ("0 0 * * FRIL", "0 0 * * 5L"),
    ("0 0 13 * +FRI", "0 0 13 * +5"),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_two_ways_to_say_the_same(left: str, right: str) -> None:
    """Names, ranges, steps, nicknames, white space and `?` are only spellings."""
    start = utc("2026-01-01T00:00")
    found = fire_times(left, "UTC", start, 40)
    assert found
    assert found == fire_times(right, "UTC", start, 40)


REFUSED = [
    ("60 * * * *", 'expected cron field "minute" within 0-59, got 60'),
    ("0 24 * * *", 'expected cron field "hour" within 0-23, got 24'),
    ("0 0 32 * *", 'expected cron field "day" within 1-31, got 32'),
    ("0 0 0 * *", 'expected cron field "day" within 1-31, got 0'),
    ("0 0 * 13 *", 'expected cron field "month" within 1-12, got 13'),
    ("0 0 * * 8", 'expected cron field "weekday" within 0-7, got 8'),
    ("60 0 0 * * *", 'expected cron field "second" within 0-59, got 60'),
    ("0 0 0 1 1 * 1969", 'expected cron field "year" within 1970-2199, got 1969'),
    ("0 0 0 1 1 * 2200", 'expected cron field "year" within 1970-2199, got 2200'),
    ("*/0 * * * *", 'expected a step within 1-60 in cron field "minute", got 0'),
    ("*/90 * * * *", "for a fixed rate use an interval"),
    ("0 */25 * * *", 'expected a step within 1-24 in cron field "hour", got 25'),
    ("0 22-2 * * *", "a range that does not run backwards"),
    ("0 0 * * FRI-MON", "a range that does not run backwards"),
    ("0 0 * * 5-0", "a range that does not run backwards"),
    ("0 0 * * MONDAY", "MONDAY"),
    ("0 0 * JANUARY *", "JANUARY"),
    ("0 0 * * XYZ", "XYZ"),
    ("JAN * * * *", "expected a number"),
    ("0 0 1,,2 * *", "a value between commas"),
    (",1 * * * *", "expected a value"),
    ("0 0 1, * *", "a value between commas"),
    ("-5 * * * *", "expected a value"),
    ("5- * * * *", "expected a value"),
    ("1-2-3 * * * *", "expected a value"),
    ("*5 * * * *", "nothing but a step after `*`"),
    ("*-5 * * * *", "nothing but a step after `*`"),
    ("? * * * *", "expected a value"),
    ("0 ? * * *", "expected a value"),
    ("L * * * *", "expected a value"),
    ("0 0 L-3 * *", "only in dialect quartz or aws"),
    ("0 0 * * L", "expected a value"),
    ("0 0 * * MON#6", "MON#6"),
    ("0 0 * * MON#0", "MON#0"),
    ("0 0 0W * *", "within 1-31, got 0"),
    ("0 0 32W * *", "within 1-31, got 32"),
    ("0 0 W * *", "expected a value"),
    ("R * * * *", "expected a value"),
    ("0~30 * * * *", "got '~'"),
    ("", "expected 5 or 6 or 7 cron fields in dialect unix, got 0"),
    ("* * * *", "expected 5 or 6 or 7 cron fields in dialect unix, got 4"),
    ("* * * * * * * *", "got 8"),
    ("@Daily", "expected one of @yearly"),
    ("@reboot", "a job cannot be bound to the start of a machine"),
    ("@fortnightly", "expected one of @yearly"),
    ("CRON_TZ=UTC 0 0 * * *", "put the zone into the field `timezone`"),
    ("TZ=Europe/Berlin 0 0 * * *", "put the zone into the field `timezone`"),
    ("0 0 * * *\n", "'\\n'"),
    ("0\n0 * * *", "'\\n'"),
    ("0\u00a00 * * *", "\\xa0"),
    ("0\u20030 * * *", "\\u2003"),
    ("0\x0b0 * * *", "\\x0b"),
    ("\u0663 * * * *", "\u0663"),
    ("\uff15 * * * *", "\uff15"),
    ("0 0 * * *\0", "NUL"),
    ("H(5-2) * * * *", "a range that does not run backwards"),
    ("H(0-60) * * * *", "within 0-59, got 60"),
    ("Hx * * * *", "`H`, `H(a-b)`"),
    ("0 0 0 1 1 * H", "`H`, `H(a-b)`"),
]


@pytest.mark.parametrize(("expression", "part"), REFUSED)
def test_refusals_say_what_was_expected(expression: str, part: str) -> None:
    """Each refusal is a sentence with what was expected and what was got."""
    with pytest.raises(BadSchedule) as caught:
        parse({"type": "cron", "expr": expression})
    assert part in caught.value.sentence
    assert caught.value.code == "invalid_schedule"
    assert caught.value.pointer == "/expr"


def test_the_length_is_measured_before_reading() -> None:
    """A megabyte of legal list is refused by its size."""
    with pytest.raises(TooLarge, match="at most 256 characters, got 1000008"):
        parse({"type": "cron", "expr": "0" + ",0" * 499_999 + " * * * *" + " "})


@pytest.mark.parametrize(
    "expression",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *", "0 0 0 29 2 ? 2027", "0 0 31 2 +MON"],
)
def test_impossible_dates_are_refused_at_creation(expression: str) -> None:
    """30 February never comes: refused when created, nothing when asked."""
    with pytest.raises(NeverFires) as caught:
        parse({"type": "cron", "expr": expression})
    assert caught.value.code == "schedule_never_fires"
    assert fire_times(expression, "UTC", utc("2026-01-01T00:00"), 3) == []


def test_an_expired_year_gives_no_times() -> None:
    """It was possible once, so it is read, and has no future."""
    assert fire_times("0 0 0 1 1 ? 2020", "UTC", utc("2026-01-01T00:00"), 3) == []
    assert len(fire_times("0 0 0 1 1 ? 2020", "UTC", utc("2019-01-01T00:00"), 3)) == 1


def test_rare_dates_are_found() -> None:
    """29 February after 2096 is in 2104, and on a Monday it may be forty years away."""
    assert days("0 0 29 2 *", "2096-03-01T00:00", 1) == ["2104-02-29"]
    assert days("0 0 29 2 +MON", "2072-03-01T00:00", 2) == ["2112-02-29", "2140-02-29"]
    assert days("0 0 * 2 MON#5", "2072-03-01T00:00", 1) == ["2112-02-29"]


def test_wild_and_fixed() -> None:
    """A job is wild when its second, minute or hour begins with a star."""
    wild = ["* 2 * * *", "*/5 2 * * *", "0 * * * *", "0 */2 * * *", "* 0 2 * * *", "*,5 2 * * *"]
    fixed = ["0 2 * * *", "0-59 2 * * *", "0 0-23 * * *", "H H * * *", "5,* 2 * * *", "@daily"]

    assert all(read_cron(expression).wild for expression in wild)
    assert not any(read_cron(expression).wild for expression in fixed)


def test_wrapping_ranges_by_policy() -> None:
    """A range over midnight or the weekend is read when the schedule says so."""
    start = utc("2026-01-01T12:00")
    schedule = parse({"type": "cron", "expr": "0 22-2/2 * * FRI-MON", "wrap": True})
    plain = parse({"type": "cron", "expr": "0 22,0,2 * * 5,6,0,1"})

    assert list(schedule.fires(start, limit=20)) == list(plain.fires(start, limit=20))
    with pytest.raises(BadSchedule, match="true or false"):
        parse({"type": "cron", "expr": "* * * * *", "wrap": "yes"})


def test_hashed_fields_are_stable_and_spread() -> None:
    """H depends on the seed and its own field alone, within the range that was given."""

    def fields(expression: str, seed: str) -> tuple[int, int]:
        cron = read_cron(expression, seed=seed)
        return cron.minutes, cron.hours

    assert fields("H H * * *", "job_1") == fields("H H 1 1 *", "job_1")
    assert fields("H 3 * * *", "job_1")[0] == fields("H H * * *", "job_1")[0]
    assert len({fields("H H * * *", f"job_{n}") for n in range(50)}) > 40
    for n in range(50):
        seed = f"job_{n}"
        assert read_cron("H(10-19) * * * *", seed=seed).minutes < 1 << 20
        assert read_cron("H(10-19) * * * *", seed=seed).minutes >= 1 << 10
        assert read_cron("H/15 * * * *", seed=seed).minutes.bit_count() == 4
        assert read_cron("H(0-29)/10 * * * *", seed=seed).minutes.bit_count() == 3
        assert read_cron("0 0 H * *", seed=seed).days.plain < 1 << 28


def test_hashed_fields_are_the_same_in_every_process() -> None:
    """The digest is fixed by these very values."""
    assert read_cron("H H * * *", seed="job_1").minutes == 1 << 29
    assert read_cron("H H * * *", seed="job_1").hours == 1 << 6
