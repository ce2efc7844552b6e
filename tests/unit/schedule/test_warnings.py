# ruff: noqa: E501 -- a table: one schedule, one line
"""Warnings word for word: what may surprise, when, and why."""

import pytest

from facts_kit import parse, utc

NOW = utc("2026-03-01T00:00")

# fmt: off
WARNED: list[tuple[str, str, dict[str, str] | None, list[tuple[str, str | None, str]]]] = [
    ("0 9 13 * 5", "UTC", None, [("day_fields_both_set", None, "day of month and day of week are both set: either one is enough")]),
    ("0 9 13 * +5", "UTC", None, [("day_fields_both_set", None, "day of month and day of week are both set: both must match")]),
    ("0 9 */2 * 5", "UTC", None, [("day_fields_both_set", None, "day of month and day of week are both set: either one is enough; cron daemons read a stepped star as `both must match`")]),
    ("0 9 13 * */2", "UTC", None, [("day_fields_both_set", None, "day of month and day of week are both set: either one is enough; cron daemons read a stepped star as `both must match`")]),
    ("0 9 */2 * +5", "UTC", None, [("day_fields_both_set", None, "day of month and day of week are both set: both must match")]),
    ("0 9 31 * *", "UTC", None, [("short_months", None, "day 31 is missing in some months; the last is `L`")]),
    ("0 9 29,30 * *", "UTC", None, [("short_months", None, "day 29, 30 is missing in some months; the last is `L`")]),
    ("0 9 28 * *", "UTC", None, []),
    ("0 9 31W,30 * *", "UTC", None, [("short_months", None, "day 30, 31 is missing in some months; the last is `L`")]),
    ("0 9 1-31 * *", "UTC", None, []),
    ("0 9 16-31 * *", "UTC", None, []),
    ("0 9 17-31 * *", "UTC", None, [("short_months", None, "day 29, 30, 31 is missing in some months; the last is `L`")]),
    ("*/7 * * * *", "UTC", None, [("uneven_step", None, "*/7 does not divide 60 minutes evenly: the last interval is shorter")]),
    ("*/7 */5 * * *", "UTC", None, [("uneven_step", None, "*/7 does not divide 60 minutes evenly: the last interval is shorter"), ("uneven_step", None, "*/5 does not divide 24 hours evenly: the last interval is shorter")]),
    ("*/50 * * * * *", "UTC", None, [("uneven_step", None, "*/50 does not divide 60 seconds evenly: the last interval is shorter"), ("too_frequent", "2026-03-01T00:00:50", "fires 10 s apart; a job that runs longer will overlap itself")]),
    ("*/30 */30 * * * *", "UTC", None, []),
    ("0-59 * * * * *", "UTC", None, [("too_frequent", "2026-03-01T00:00:01", "fires 1 s apart; a job that runs longer will overlap itself")]),
    ("*/59 * * * * *", "UTC", None, [("uneven_step", None, "*/59 does not divide 60 seconds evenly: the last interval is shorter"), ("too_frequent", "2026-03-01T00:00:59", "fires 1 s apart; a job that runs longer will overlap itself")]),
    ("30 2 * * *", "Europe/Berlin", None, [("dst_gap", "2026-03-29T01:00:00", "2026-03-29T02:30:00 does not exist: runs at 03:00"), ("dst_overlap", "2026-10-25T00:30:00", "2026-10-25 02:30 comes twice: runs once"), ("dst_gap", "2027-03-28T01:00:00", "2027-03-28T02:30:00 does not exist: runs at 03:00")]),
    ("30 2 * * *", "Europe/Berlin", {"gap": "skip", "overlap": "second"}, [("dst_gap", "2026-03-29T01:30:00", "2026-03-29T02:30:00 does not exist: skipped"), ("dst_overlap", "2026-10-25T01:30:00", "2026-10-25 02:30 comes twice"), ("dst_gap", "2027-03-28T01:30:00", "2027-03-28T02:30:00 does not exist: skipped")]),
    ("30 2 * * *", "Europe/Berlin", {"overlap": "both"}, [("dst_gap", "2026-03-29T01:00:00", "2026-03-29T02:30:00 does not exist: runs at 03:00"), ("dst_overlap", "2026-10-25T01:30:00", "2026-10-25 02:30 comes twice"), ("dst_gap", "2027-03-28T01:00:00", "2027-03-28T02:30:00 does not exist: runs at 03:00")]),
    ("*/30 * * * *", "Europe/Berlin", None, [("dst_overlap", "2026-10-25T01:00:00", "2026-10-25 02:00 comes twice")]),
    ("*/30 2 * * *", "Europe/Berlin", {"gap": "skip", "overlap": "first"}, [("dst_gap", "2026-03-29T01:00:00", "2026-03-29T02:00:00 does not exist: skipped"), ("dst_overlap", "2026-10-25T00:00:00", "2026-10-25 02:00 comes twice: runs once"), ("dst_gap", "2027-03-28T01:00:00", "2027-03-28T02:00:00 does not exist: skipped")]),
    ("every P1D from 2026-01-01T02:30", "Europe/Berlin", None, [("dst_gap", "2026-03-29T01:30:00", "2026-03-29T02:30:00 does not exist: runs at 03:30"), ("dst_gap", "2027-03-28T01:30:00", "2027-03-28T02:30:00 does not exist: runs at 03:30")]),
    ("0 0 * * *", "America/Santiago", None, [("dst_gap", "2026-09-06T04:00:00", "2026-09-06T00:00:00 does not exist: runs at 01:00")]),
    ("0 0 1 1 *", "UTC", None, []),
    ("2026-01-01T00:00", "UTC", None, [("never_fires", None, "no fire lies in the future")]),
    ("every 59s", "UTC", None, [("too_frequent", "2026-03-01T00:00:59", "fires 59 s apart; a job that runs longer will overlap itself")]),
    ("every 60s", "UTC", None, []),
]
# fmt: on


@pytest.mark.parametrize(("source", "zone", "dst", "expected"), WARNED)
def test_warnings_word_for_word(
    source: str, zone: str, dst: dict[str, str] | None, expected: list[tuple[str, str | None, str]]
) -> None:
    """Looking 400 days ahead from the first of March."""
    found = parse(source, timezone=zone, now=NOW, dst=dst).warnings(NOW)
    assert found == [(code, at and utc(at), detail) for code, at, detail in expected]
