# ruff: noqa: E501 -- tables: one refusal, one line
"""Refusals of recurrence rules and of plain words."""

import pytest

from betimes.domain.errors import Invalid
from facts_kit import parse, utc

NOW = utc("2026-01-01")


def refused(source: str | dict[str, object]) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse(source, now=NOW)
    return caught.value


# fmt: off
RULES = [
    ("FREQ=FORTNIGHTLY", "expected FREQ out of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY, SECONDLY, got 'FORTNIGHTLY'"),
    ("INTERVAL=2", "expected FREQ out of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY, SECONDLY, got ''"),
    ("FREQ=DAILY;COUNT=0", "expected COUNT within 1-100000, got '0'"),
    ("FREQ=DAILY;COUNT=100001", "expected COUNT within 1-100000, got '100001'"),
    ("FREQ=DAILY;INTERVAL=0", "expected INTERVAL within 1-100000, got '0'"),
    ("FREQ=DAILY;INTERVAL=100001", "expected INTERVAL within 1-100000, got '100001'"),
    ("FREQ=DAILY;INTERVAL=x", "expected INTERVAL within 1-100000, got 'X'"),
    ("FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z", "expected COUNT or UNTIL, not both, got 'FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z'"),
    ("FREQ=DAILY;UNTIL=20270101", "expected UNTIL as a time in UTC such as 20261231T235959Z, got '20270101'"),
    ("FREQ=DAILY;UNTIL=soon", "expected UNTIL as a time in UTC such as 20261231T235959Z, got 'SOON'"),
    ("FREQ=DAILY;BYMONTH=13", "expected BYMONTH within 1-12, got '13'"),
    ("FREQ=DAILY;BYMONTH=-1", "expected BYMONTH within 1-12, got '-1'"),
    ("FREQ=DAILY;BYMONTHDAY=32", "expected BYMONTHDAY within 1-31 or negative, got '32'"),
    ("FREQ=DAILY;BYMONTHDAY=0", "expected BYMONTHDAY within 1-31 or negative, got '0'"),
    ("FREQ=DAILY;BYHOUR=24", "expected BYHOUR within 0-23, got '24'"),
    ("FREQ=DAILY;BYMINUTE=60", "expected BYMINUTE within 0-59, got '60'"),
    ("FREQ=DAILY;BYSECOND=60", "expected BYSECOND within 0-59, got '60'"),
    ("FREQ=YEARLY;BYWEEKNO=54", "expected BYWEEKNO within 1-53 or negative, got '54'"),
    ("FREQ=YEARLY;BYYEARDAY=367", "expected BYYEARDAY within 1-366 or negative, got '367'"),
    ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367", "expected BYSETPOS within 1-366 or negative, got '367'"),
    ("FREQ=MONTHLY;BYSETPOS=1", "expected BYSETPOS together with another BY part, got '1'"),
    ("FREQ=MONTHLY;BYWEEKNO=1", "expected no BYWEEKNO with FREQ=MONTHLY, got '1'"),
    ("FREQ=DAILY;BYYEARDAY=1", "expected no BYYEARDAY with FREQ=DAILY, got '1'"),
    ("FREQ=WEEKLY;BYMONTHDAY=1", "expected no BYMONTHDAY with FREQ=WEEKLY, got '1'"),
    ("FREQ=WEEKLY;BYDAY=XX", "expected BYDAY such as MO, 1MO or -1FR, got 'XX'"),
    ("FREQ=WEEKLY;BYDAY=1MO", "expected a numbered weekday only with FREQ=MONTHLY or FREQ=YEARLY, got '1MO'"),
    ("FREQ=MONTHLY;BYDAY=0MO", "expected BYDAY such as MO, 1MO or -1FR, got '0MO'"),
    ("FREQ=YEARLY;BYDAY=54MO", "expected BYDAY such as MO, 1MO or -1FR, got '54MO'"),
    ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "expected a numbered weekday only with FREQ=MONTHLY or FREQ=YEARLY, got '1MO'"),
    ("FREQ=DAILY;WKST=XX", "expected a weekday out of MO, TU, WE, TH, FR, SA, SU, got 'XX'"),
    ("FREQ=DAILY;FREQ=DAILY", "expected every part of a rule once, got 'FREQ=DAILY;FREQ=DAILY'"),
    ("FREQ=DAILY;BYEASTER=0", "expected parts out of BYDAY, BYHOUR, BYMINUTE, BYMONTH, BYMONTHDAY, BYSECOND, BYSETPOS, BYWEEKNO, BYYEARDAY, COUNT, FREQ, INTERVAL, UNTIL, WKST, got 'BYEASTER'"),
    ("FREQ=DAILY;BYDAY", "expected NAME=value, got 'BYDAY'"),
    ("FREQ=DAILY;BYDAY=", "expected NAME=value, got 'BYDAY='"),
    ("RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "expected exactly one RRULE, got 2"),
    ("DTSTART:20260101T090000Z", "expected exactly one RRULE, got 0"),
    ("DTSTART:20260101T090000Z\nDTSTART:20260101T090000Z\nRRULE:FREQ=DAILY", "expected at most one DTSTART, got 2"),
    ("EXRULE:FREQ=DAILY", "expected RRULE, DTSTART, RDATE or EXDATE, got 'EXRULE'"),
    ("DTSTART;LANGUAGE=de:20260101T090000\nRRULE:FREQ=DAILY", "expected the parameters TZID and VALUE only, got 'LANGUAGE'"),
    ("DTSTART:2026-01-01\nRRULE:FREQ=DAILY", "expected a time such as 20261224T150000 or 20261224T150000Z, got '2026-01-01'"),
    ("DTSTART;VALUE=DATE:20260101T090000\nRRULE:FREQ=DAILY", "expected VALUE=DATE with a date, and only then, got '20260101T090000'"),
    ("DTSTART;VALUE=DATE-TIME:20260101\nRRULE:FREQ=DAILY", "expected VALUE=DATE with a date, and only then, got '20260101'"),
    ("DTSTART;TZID=Europe/Berlin:20260101T090000Z\nRRULE:FREQ=DAILY", "expected either TZID or a time in UTC, got '20260101T090000Z'"),
    ("DTSTART;TZID:20260101T090000\nRRULE:FREQ=DAILY", "expected NAME=value, got 'TZID'"),
    ("DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;BYHOUR=10", "expected DTSTART to be an occurrence of its rule, got '2026-01-01T09:00:00Z'"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sentence"), RULES)
def test_rule_refusals(text: str, sentence: str) -> None:
    """Every part of a rule has its own sentence, and all of them one code."""
    error = refused({"type": "rrule", "expr": text})
    assert (str(error), error.pointer, error.code) == (sentence, "/expr", "invalid_rrule")


# fmt: off
PHRASES = [
    ("every blue moon", "expected a phrase such as `every weekday at 9:30`, `every 15 minutes`, `first monday of the month at noon` or `in 2 hours`, got 'every blue moon'"),
    ("every 45 minutes", "expected a number of minutes that divides 60, got 45; for a fixed rate say `every 45m`"),
    ("every 7 hours", "expected a number of hours that divides 24, got 7; for a fixed rate say `every 7h`"),
    ("every hour at 60", "expected a minute within 0-59, got 60"),
    ("every day at 9", "expected a phrase with one reading, got 'every day at 9'; say for example `every day at 9am` or `every day at 9pm`"),
    ("every day at 25:00", "expected a time of day such as 9:30 or 5pm, got '25:00'"),
    ("every day at 9:60", "expected a time of day such as 9:30 or 5pm, got '9:60'"),
    ("every day at 13pm", "expected a time of day such as 9:30 or 5pm, got '13pm'"),
    ("every day at 0am", "expected a time of day such as 9:30 or 5pm, got '0am'"),
    ("on the 32nd of every month at 9:00", "expected a day within 1-31, got 32"),
    ("on the 0th of every month at 9:00", "expected a day within 1-31, got 0"),
    ("every other day", "expected a phrase with one reading, got 'every other day'; say for example `every P2D` or `0 9 */2 * *`"),
    ("biweekly", "expected a phrase with one reading, got 'biweekly'; say for example `every P2W` or `0 9 * * MON,THU`"),
    ("weekly", "expected a phrase with one reading, got 'weekly'; say for example `every monday at 9:00` or `@weekly`"),
    ("every 15 minutes between 9 and 5", "expected a phrase with one reading, got 'every 15 minutes between 9 and 5'; say for example `*/15 9-16 * * *` or `*/15 9-17 * * *`"),
    ("on monday at 9:00", "expected a phrase with one reading, got 'on monday at 9:00'; say for example `every monday at 9:00` or `2026-01-05T09:00`"),
    ("monday", "expected a phrase with one reading, got 'monday'; say for example `every monday at 9:00` or `0 0 * * MON`"),
    ("30 february at 9:00", "expected a date that exists, got 30 of month 2"),
    ("30 february 2027 at 9:00", "expected a date that exists, got 2027-2-30"),
    ("tomorrow at 9am and 5pm", "expected one time of day, got '9am and 5pm'"),
    ("na\u00efve", "expected plain ASCII words, got 'na\u00efve'"),
]
# fmt: on


@pytest.mark.parametrize(("phrase", "sentence"), PHRASES)
def test_phrase_refusals(phrase: str, sentence: str) -> None:
    """What was not understood, or could be understood in two ways, and what to say instead."""
    error = refused(phrase)
    assert (str(error), error.pointer) == (sentence, "/expr")
