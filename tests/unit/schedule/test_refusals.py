# ruff: noqa: E501 -- tables: one refusal, one line
"""Refusals are sentences: what was expected, what was got, and which member is meant."""

import pytest

from betimes.domain.errors import Invalid
from facts_kit import fire_times, parse, utc

NOW = utc("2026-01-01")


def refused(source: object) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse(source, now=NOW)  # type: ignore[arg-type]  # some are no schedules at all
    return caught.value


# fmt: off
CRON = [
    ("unix", "TZ=UTC 0 9 * * *", "expected a cron expression without a zone in it, got a `TZ=` prefix; put the zone into the field `timezone`"),
    ("unix", "CRON_TZ=UTC 0 9 * * *", "expected a cron expression without a zone in it, got a `TZ=` prefix; put the zone into the field `timezone`"),
    ("unix", "0 9 * * \u0663", "expected ASCII digits, letters, `* ? / , # + - ( )`, spaces and tabs in a cron expression, got '\u0663'"),
    ("unix", "@reboot", "expected one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every, got '@reboot'; a job cannot be bound to the start of a machine"),
    ("unix", "@Daily", "expected one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every, got '@Daily'"),
    ("unix", "0 9 * *", "expected 5 or 6 or 7 cron fields in dialect unix, got 4"),
    ("unix", "0 9 * * * * * *", "expected 5 or 6 or 7 cron fields in dialect unix, got 8"),
    ("quartz", "0 9 * * *", "expected 6 or 7 cron fields in dialect quartz, got 5"),
    ("quartz", "0 0 9 * * *", "expected `?` in exactly one of the day-of-month and day-of-week fields, got '*' and '*'"),
    ("quartz", "0 0 9 ? * ?", "expected `?` in exactly one of the day-of-month and day-of-week fields, got '?' and '?'"),
    ("unix", "60 9 * * *", 'expected cron field "minute" within 0-59, got 60'),
    ("unix", "0 24 * * *", 'expected cron field "hour" within 0-23, got 24'),
    ("unix", "0 9 32 * *", 'expected cron field "day" within 1-31, got 32'),
    ("unix", "0 9 0 * *", 'expected cron field "day" within 1-31, got 0'),
    ("unix", "0 9 * 13 *", 'expected cron field "month" within 1-12, got 13'),
    ("unix", "0 9 * * 8", 'expected cron field "weekday" within 0-7, got 8'),
    ("kubernetes", "0 9 * * 7", 'expected cron field "weekday" within 0-6, got 7'),
    ("quartz", "0 0 9 ? * 8", 'expected cron field "weekday" within 1-7, got 8'),
    ("quartz", "0 0 9 ? * 0", 'expected cron field "weekday" within 1-7, got 0'),
    ("unix", "0 0 9 * * * 1969", 'expected cron field "year" within 1970-2199, got 1969'),
    ("unix", "0 0 9 * * * 2200", 'expected cron field "year" within 1970-2199, got 2200'),
    ("unix", "0 9 * * MONDAY", "expected a value, a range or a step in cron field \"weekday\", got 'MONDAY'"),
    ("unix", "0 9 * * ABC", "expected a number or one of SUN, MON, TUE, WED, THU, FRI, SAT in cron field \"weekday\", got 'ABC'"),
    ("unix", "0 9 * MOO *", "expected a number or one of JAN, FEB, MAR, APR, MAY, JUN, JUL, AUG, SEP, OCT, NOV, DEC in cron field \"month\", got 'MOO'"),
    ("unix", "A 9 * * *", "expected a value, a range or a step in cron field \"minute\", got 'A'"),
    ("unix", "ABC 9 * * *", "expected a number in cron field \"minute\", got 'ABC'"),
    ("unix", "0 9 * * 5-", "expected a value, a range or a step in cron field \"weekday\", got '5-'"),
    ("unix", "*5 9 * * *", "expected nothing but a step after `*` in cron field \"minute\", got '*5'"),
    ("unix", "*-5 9 * * *", "expected nothing but a step after `*` in cron field \"minute\", got '*-5'"),
    ("unix", "0 22-2 * * *", "expected a range that does not run backwards in cron field \"hour\", got '22-2'"),
    ("quartz", "0 0 9 ? * * 2030-2028", "expected a range that does not run backwards in cron field \"year\", got '2030-2028'"),
    ("unix", "*/90 9 * * *", 'expected a step within 1-60 in cron field "minute", got 90; for a fixed rate use an interval, such as `every 90m`'),
    ("unix", "*/0 9 * * *", 'expected a step within 1-60 in cron field "minute", got 0'),
    ("unix", "0 9 */32 * *", 'expected a step within 1-31 in cron field "day", got 32; for a fixed rate use an interval, such as `every 90m`'),
    ("unix", "0 9 1,,2 * *", "expected a value between commas in cron field \"day\", got '1,,2'"),
    ("unix", "0 9 * * 1,", "expected a value between commas in cron field \"weekday\", got '1,'"),
    ("unix", "1,,2 9 * * *", "expected a value, a range or a step in cron field \"minute\", got ''"),
    ("unix", "0 9 L-3 * *", "expected `L-n` only in dialect quartz or aws in cron field \"day\", got 'L-3'"),
    ("quartz", "0 0 9 L-31 * ?", "expected `L-n` with n within 0-30 in cron field \"day\", got 'L-31'"),
    ("unix", "0 9 * * L", "expected a value, a range or a step in cron field \"weekday\", got 'L'"),
    ("unix", "0 9 * * MON#6", "expected a value, a range or a step in cron field \"weekday\", got 'MON#6'"),
    ("unix", "0 9 32W * *", 'expected cron field "day" within 1-31, got 32'),
    ("unix", "H(5 9 * * *", "expected `H`, `H(a-b)`, `H/n` or `H(a-b)/n` in cron field \"minute\", got 'H(5'"),
    ("unix", "H(9-5) 9 * * *", "expected a range that does not run backwards in cron field \"minute\", got 'H(9-5)'"),
    ("unix", "0 0 9 * * * H", "expected `H`, `H(a-b)`, `H/n` or `H(a-b)/n` in cron field \"year\", got 'H'"),
    ("unix", "0 0 30 2 *", "expected a cron expression that fires at least once before 2200, got '0 0 30 2 *': no such date exists"),
]
# fmt: on


@pytest.mark.parametrize(("dialect", "expression", "sentence"), CRON)
def test_cron_refusals(dialect: str, expression: str, sentence: str) -> None:
    """What the expression should have been, in the dialect it was written in."""
    error = refused({"type": "cron", "expr": expression, "dialect": dialect})
    assert (str(error), error.pointer) == (sentence, "/expr")


# fmt: off
MEMBERS = [
    ({"type": "cron", "expr": "0 9 * * *", "dst": "skip"}, "/dst", "expected dst as an object with gap and overlap, got str"),
    ({"type": "cron", "expr": "0 9 * * *", "dst": {"gap": "next", "holes": "skip"}}, "/dst", "expected dst members gap and overlap, got 'holes'"),
    ({"type": "cron", "expr": "0 9 * * *", "dst": {"gap": "never"}}, "/dst/gap", "expected dst.gap out of next, skip, shift, got 'never'"),
    ({"type": "cron", "expr": "0 9 * * *", "dst": {"overlap": "twice"}}, "/dst/overlap", "expected dst.overlap out of first, second, both, got 'twice'"),
    ({"type": "once", "at": 17}, "/at", "expected a time such as 2026-12-24T15:00:00Z, got int"),
    ({"type": "once", "at": "tomorrow"}, "/at", "expected a time such as 2026-12-24T15:00:00Z, got 'tomorrow'"),
    ({"type": "once", "at": "2026-02-30T09:00"}, "/at", "expected a time that exists, got '2026-02-30T09:00'"),
    ({"type": "once", "at": "2026-01-01T09:60"}, "/at", "expected a time that exists, got '2026-01-01T09:60'"),
    ({"type": "once"}, "/at", "expected a time such as 2026-12-24T15:00:00Z, got NoneType"),
    ({"type": "cron", "expr": 17, "dialect": "unix"}, "/expr", "expected `expr` as text, got int"),
    ({"type": "cron", "expr": "0 9 * * ? *", "dialect": "cobol"}, "/dialect", "expected a cron dialect out of unix, quartz, aws, celery, apscheduler3, kubernetes, got 'cobol'"),
    ({"type": "cron", "expr": "0 9 * * *", "day_match": "xor"}, "/day_match", "expected day_match or|and, got 'xor'"),
    ({"type": "cron", "expr": "0 9 13 * +FRI", "day_match": "or"}, "/day_match", "expected day_match `and` with `+`, got `or`"),
    ({"type": "cron", "expr": "0 9 * * *", "day_match": 3}, "/day_match", "expected `day_match` as text, got int"),
    ({"type": "cron", "expr": "0 9 * * *", "wrap": "yes"}, "/wrap", "expected `wrap` as true or false"),
    ({"type": "interval", "every": "0s"}, "/every", "expected a period longer than zero, got '0s'"),
    ({"type": "interval", "every": "1 fortnight"}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got '1 fortnight'"),
    ({"type": "interval", "every": "P"}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'P'"),
    ({"type": "interval", "every": "PT"}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'PT'"),
    ({"type": "interval", "every": "P1.5M"}, "/every", "expected whole days, weeks, months and years, got 'P1.5M'"),
    ({"type": "interval", "every": "P1.5DT1H"}, "/every", "expected a fraction in the last part of a duration only, got 'P1.5DT1H'"),
    ({"type": "interval", "every": "1.5 months"}, "/every", "expected whole days, weeks, months and years, got '1.5 months'"),
    ({"type": "interval", "every": "P201Y"}, "/every", "expected a duration of at most 200 years, got 'P201Y'"),
    ({"type": "interval", "every": -1}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got '-1'"),
    ({"type": "interval", "every": float("nan")}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'nan'"),
    ({"type": "interval", "every": None}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'None'"),
    ({"type": "interval", "every": True}, "/every", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'True'"),
    ({"type": "interval", "every": "500ms"}, "/every", "expected a period of at least 1 s, got 0.5 s"),
    ({"type": "interval", "every": "1h", "mode": "sometimes"}, "/mode", "expected mode out of fixed_rate, fixed_delay, got 'sometimes'"),
    ({"type": "interval", "every": "1h", "month_end": "round"}, "/month_end", "expected month_end clamp|skip, got 'round'"),
    ({"type": "interval", "every": "1h", "anchor": "noon"}, "/anchor", "expected a time such as 2026-12-24T15:00:00Z, got 'noon'"),
    ({"type": "interval", "every": "P1M", "mode": "fixed_delay"}, "/every", "expected a duration without months or years, got P1M"),
    ({"type": "delay", "after": "soon"}, "/after", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'soon'"),
    ({"type": "delay"}, "/after", "expected a duration such as PT15M, P1D, 1h30m or `2 days`, got 'None'"),
    ({"type": "iso8601", "expr": "R5/P1D"}, "/expr", "expected R[n]/start/duration[/end], got 'R5/P1D'"),
    ({"type": "iso8601", "expr": "5/2026-01-01/P1D"}, "/expr", "expected R[n]/start/duration[/end], got '5/2026-01-01/P1D'"),
    ({"type": "iso8601", "expr": "R5/P1D/2026-01-01"}, "/expr", "expected R[n]/start/duration[/end], got 'R5/P1D/2026-01-01': an interval that counts back from its end is not supported"),
    ({"type": "iso8601", "expr": "R5/2026-01-01/2026-01-02"}, "/expr", "expected a duration such as P1M or PT1H after the start, got '2026-01-02'"),
    ({"type": "iso8601", "expr": "R0/2026-01-01/P1D"}, "/expr", "expected at least one repetition, got R0"),
    ({"type": "iso8601", "expr": "R/2026-01-01/P0D"}, "/expr", "expected a period longer than zero, got 'P0D'"),
    ({"type": "iso8601"}, "/expr", "expected `expr` as text, got nothing"),
    ({"type": "weekly"}, "/type", "expected a schedule type out of once, delay, cron, interval, iso8601, rrule, text, union, manual, got 'weekly'"),
    ({"type": 7}, "/type", "expected a schedule type out of once, delay, cron, interval, iso8601, rrule, text, union, manual, got '7'"),
    ({}, "/type", "expected a schedule type out of once, delay, cron, interval, iso8601, rrule, text, union, manual, but `type` is missing"),
    ({"expr": "0 9 * * *"}, "/type", "expected a schedule type out of once, delay, cron, interval, iso8601, rrule, text, union, manual, but `type` is missing"),
    ({"type": None}, "/type", "expected a schedule type out of once, delay, cron, interval, iso8601, rrule, text, union, manual, got 'None'"),
    ({"type": "cron", "expr": "0 9 * * *", "colour": "red"}, "/colour", "expected members out of calendars, catchup, day_match, dialect, dst, end_at, expr, jitter, max_fires, overlap, pause_after_failures, start_at, timezone, type, window, wrap in a schedule of type cron, got 'colour'"),
    ({"type": "cron"}, "/expr", "expected `expr` as text, got nothing"),
    ({"type": "cron", "expr": "0 9\u0000* * *"}, "/expr", "expected `expr` without NUL and lone surrogates"),
    ({"type": "cron", "expr": "0 9 \ud800"}, "/expr", "expected `expr` without NUL and lone surrogates"),
    ({"type": "cron", "expr": "0 9 * * *", "timezone": 5}, "/timezone", "expected `timezone` as text, got int"),
    ({"type": "cron", "expr": "0 9 * * *", "start_at": "later"}, "/start_at", "expected a time such as 2026-12-24T15:00:00Z, got 'later'"),
    ({"type": "cron", "expr": "0 9 * * *", "end_at": 5}, "/end_at", "expected a time such as 2026-12-24T15:00:00Z, got int"),
    ({"type": "cron", "expr": "0 9 * * *", "start_at": "2026-02-01", "end_at": "2026-01-01"}, "/end_at", "expected end_at not before start_at"),
    ({"type": "cron", "expr": "0 9 * * *", "max_fires": 0}, "/max_fires", "expected `max_fires` as a whole number within 1-1000000000, got '0'"),
    ({"type": "cron", "expr": "0 9 * * *", "max_fires": True}, "/max_fires", "expected `max_fires` as a whole number within 1-1000000000, got 'True'"),
    ({"type": "cron", "expr": "0 9 * * *", "max_fires": 1000000001}, "/max_fires", "expected `max_fires` as a whole number within 1-1000000000, got '1000000001'"),
    ({"type": "cron", "expr": "0 9 * * *", "pause_after_failures": 1001}, "/pause_after_failures", "expected `pause_after_failures` as a whole number within 1-1000, got '1001'"),
    ({"type": "cron", "expr": "0 9 * * *", "jitter": "25h"}, "/jitter", "expected `jitter` of at most 1440 minutes, got '25h'"),
    ({"type": "cron", "expr": "0 9 * * *", "jitter": "P1M"}, "/jitter", "expected a duration without months or years, got P1M"),
    ({"type": "cron", "expr": "0 9 * * *", "window": "1441m"}, "/window", "expected `window` of at most 1440 minutes, got '1441m'"),
    ({"type": "cron", "expr": "0 9 * * *", "overlap": "merge"}, "/overlap", "expected overlap out of allow, skip, buffer_one, buffer_all, cancel_running, replace, got 'merge'"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": ["all"]}, "/catchup", "expected catchup with policy, window and max"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": {"age": 1}}, "/catchup", "expected catchup with policy, window and max"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": "some"}, "/catchup/policy", "expected catchup.policy out of none, latest, all, got 'some'"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": {"window": "3661d"}}, "/catchup/window", "expected `window` of at most 5270400 minutes, got '3661d'"),
    ({"type": "cron", "expr": "0 9 * * *", "catchup": {"max": 10001}}, "/catchup/max", "expected `max` as a whole number within 1-10000, got '10001'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": ["x"]}, "/calendars", "expected calendars with include, exclude and roll"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"holidays": []}}, "/calendars", "expected calendars with include, exclude and roll"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"roll": "up"}}, "/calendars/roll", "expected calendars.roll out of none, previous, next, nearest, got 'up'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"include": "x"}}, "/calendars", "expected a list of calendars"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"include": ["unknown"]}}, "/calendars", "expected the name of a known calendar, got 'unknown'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"include": [3]}}, "/calendars", "expected the name of a known calendar, got '3'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": [{"name": "x", "dates": ["2026-13-01"]}]}}, "/calendars", "expected a date such as 2026-12-25 or a range such as 2026-12-24/2026-12-26, got '2026-13-01'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": [{"name": "x", "dates": ["2026-01-02/2026-01-01"]}]}}, "/calendars", "expected a date such as 2026-12-25 or a range such as 2026-12-24/2026-12-26, got '2026-01-02/2026-01-01'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": [{"name": "x", "dates": [5]}]}}, "/calendars", "expected a date such as 2026-12-25 or a range such as 2026-12-24/2026-12-26, got '5'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": [{"name": "x", "weekdays": ["monday"]}]}}, "/calendars", "expected a weekday out of sun, mon, tue, wed, thu, fri, sat, got 'monday'"),
    ({"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": [{"name": "x", "weekdays": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}]}}, "", "expected a schedule that fires at least once, got 'cron: 0 9 * * * @ UTC'"),
    ({"type": "union"}, "/of", "expected `of` as a list of schedules"),
    ({"type": "union", "of": []}, "/of", "expected `of` as a list of schedules"),
    ({"type": "union", "of": [5]}, "/of/0", "expected a schedule object in a union"),
    ({"type": "union", "of": [{"type": "interval", "every": "1h", "mode": "fixed_delay"}]}, "/of", "expected no fixed delay inside a union"),
    ("rate(5 weeks)", "", "expected rate(n minutes|hours|days), got rate(5 weeks)"),
    (5, "", "expected a schedule as an object or as text, got int"),
    ({"type": "text", "expr": 5}, "/expr", "expected `expr` as text, got int"),
]
# fmt: on


@pytest.mark.parametrize(("source", "pointer", "sentence"), MEMBERS)
def test_member_refusals(source: object, pointer: str, sentence: str) -> None:
    """The pointer names the member that is wrong."""
    error = refused(source)
    assert (str(error), error.pointer) == (sentence, pointer)


LONG = "x" * 60
DAILY = {"type": "cron", "expr": "0 9 * * *"}


@pytest.mark.parametrize(
    "source",
    [
        {"type": LONG},
        {**DAILY, LONG: 1},
        {**DAILY, "overlap": LONG},
        {**DAILY, "catchup": LONG},
        {**DAILY, "max_fires": LONG},
        {**DAILY, "dialect": LONG},
        {**DAILY, "calendars": {"exclude": [LONG]}},
        {**DAILY, "calendars": {"exclude": [{"name": "a", "dates": [LONG]}]}},
        {**DAILY, "calendars": {"exclude": [{"name": "a", "weekdays": [LONG]}]}},
        {"type": "interval", "every": "1h", "mode": LONG},
        {"type": "rrule", "expr": f"FREQ={LONG.upper()}"},
        {"type": "rrule", "expr": f"FREQ=DAILY;{LONG}=1"},
        {"type": "rrule", "expr": f"FREQ=DAILY;COUNT={LONG}"},
        {"type": "rrule", "expr": f"FREQ=DAILY;UNTIL={LONG}"},
        {"type": "rrule", "expr": f"FREQ=DAILY;BYMONTH={LONG}"},
        {"type": "rrule", "expr": f"FREQ=DAILY;BYDAY={LONG}"},
        {"type": "rrule", "expr": f"FREQ=DAILY;WKST={LONG}"},
        {"type": "rrule", "expr": f"{LONG}:1\nRRULE:FREQ=DAILY"},
        {"type": "rrule", "expr": f"DTSTART;{LONG}=1:20260101T000000\nRRULE:FREQ=DAILY"},
    ],
)
def test_long_mistakes_are_cut(source: dict[str, object]) -> None:
    """Forty characters are enough to find it again, in the sentence and in the pointer."""
    error = refused(source)
    assert f"got '{LONG[:40]}'".lower() in str(error).lower()
    assert LONG[:41] not in error.pointer


@pytest.mark.parametrize(
    "text", [f"FREQ=DAILY;{'X' * 90}", f"DTSTART:{'X' * 90}\nRRULE:FREQ=DAILY"]
)
def test_long_parts_are_cut(text: str) -> None:
    """Eighty characters of a part of a rule."""
    assert str(refused({"type": "rrule", "expr": text})).endswith(f"got '{'X' * 80}'")


@pytest.mark.parametrize(
    "members",
    [
        {"max_fires": 1_000_000_000, "start_at": "2026-01-01"},
        {"max_fires": 1, "start_at": "2026-01-01"},
        {"pause_after_failures": 1_000},
        {"jitter": "24h"},
        {"window": "1440m"},
        {"catchup": {"policy": "all", "max": 10_000, "window": "3660d"}},
    ],
)
def test_the_largest_that_is_accepted(members: dict[str, object]) -> None:
    """Limits are themselves within the limits, and stored as they were given."""
    stored = parse({**DAILY, **members}).to_dict()
    assert set(members) <= set(stored)


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"jitter": "soon"}, "/jitter"),
        ({"window": "P1Y"}, "/window"),
        ({"catchup": {"window": "soon"}}, "/catchup/window"),
        ({"catchup": {"window": "P1M"}}, "/catchup/window"),
        ({"catchup": {"max": 0}}, "/catchup/max"),
    ],
)
def test_pointers_into_members(members: dict[str, object], pointer: str) -> None:
    """The whole way to what is wrong."""
    assert refused({**DAILY, **members}).pointer == pointer


@pytest.mark.parametrize("number", [0, 0xD800, 0xDBFF, 0xDFFF])
def test_texts_that_no_database_takes(number: int) -> None:
    """NUL and lone surrogates, wherever they stand; other odd characters have better sentences."""
    error = refused({"type": "text", "expr": f"every day{chr(number)}"})
    assert str(error) == "expected `expr` without NUL and lone surrogates"
    assert "plain ASCII" in str(refused({"type": "text", "expr": "every day\ue000"}))


def test_the_entry_point_names_its_kinds() -> None:
    """All of them, as they are written."""
    with pytest.raises(Invalid) as caught:
        fire_times("0 9 * * *", "UTC", NOW, 1, kind="crontab")
    assert str(caught.value) == (
        "expected a kind out of cron, interval, iso8601, rrule, text, once, delay, union, auto, "
        "got 'crontab'"
    )
