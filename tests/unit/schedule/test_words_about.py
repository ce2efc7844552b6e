"""What a schedule says about itself: descriptions, warnings, preview."""

import pytest

from betimes.schedule import preview
from facts_kit import parse, utc

NOW = utc("2026-03-01T00:00")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("0 2 * * *", "Every day at 02:00 (UTC)"),
        ("0 9,17 * * *", "Every day at 09:00 and 17:00 (UTC)"),
        ("30 9 * * MON-FRI", "On Monday through Friday at 09:30 (UTC)"),
        ("0 10 * * 6,0", "On Saturday and Sunday at 10:00 (UTC)"),
        ("0 8 * * 1,3,5", "On Monday, Wednesday and Friday at 08:00 (UTC)"),
        ("* * * * *", "Every minute (UTC)"),
        ("*/15 * * * *", "Every 15 minutes (UTC)"),
        (
            "*/15 9-17 * * MON-FRI",
            "Every 15 minutes, hours 9 through 17, on Monday through Friday (UTC)",
        ),
        ("5 * * * *", "Every hour at minute 5 (UTC)"),
        ("0 */2 * * *", "Every 2 hours at minute 0 (UTC)"),
        ("*/10 * * * * *", "Every 10 seconds (UTC)"),
        ("* * * * * *", "Every second (UTC)"),
        ("*/20 5 * * * *", "Every 20 seconds, minute 5 (UTC)"),
        ("30 0 12 * * *", "Every day at 12:00:30 (UTC)"),
        ("1,2,40 * * * *", "Minutes 1, 2 and 40 (UTC)"),
        ("0 0 1 1 *", "On day 1 of the month in January at 00:00 (UTC)"),
        ("0 0 L * *", "On the last day of the month at 00:00 (UTC)"),
        ("0 0 LW * *", "On the last weekday of the month at 00:00 (UTC)"),
        ("0 0 15W * *", "On the weekday nearest day 15 of the month at 00:00 (UTC)"),
        ("0 12 * * MON#1", "On the first Monday of the month at 12:00 (UTC)"),
        ("0 12 * * 5L", "On the last Friday of the month at 12:00 (UTC)"),
        ("0 0 13 * 5", "On day 13 of the month or on Friday at 00:00 (UTC)"),
        ("0 0 13 * +5", "On day 13 of the month and also only on Friday at 00:00 (UTC)"),
        ("0 0 0 1 1 ? 2030", "On day 1 of the month in January at 00:00 in 2030 (UTC)"),
        ("0 0 */2 * *", "On every 2nd day of the month from day 1 at 00:00 (UTC)"),
        ("every 90m", "Every 1 hour and 30 minutes, counted from 2026-03-01T00:00:00Z (UTC)"),
        ("every 1h", "Every hour, counted from 2026-03-01T00:00:00Z (UTC)"),
        ("every 2d", "Every 2 days, counted from 2026-03-01T00:00:00Z (UTC)"),
        ("2026-12-24T15:00", "Once, at 2026-12-24T15:00:00 (UTC)"),
        ("manual", "Only when asked to run"),
        ("R/2026-01-01T00:00Z/P1M", "Repeating interval R/2026-01-01T00:00Z/P1M (UTC)"),
        ("FREQ=DAILY", "Recurrence rule FREQ=DAILY (UTC)"),
        ("30 */5 * * * *", "Every 5 minutes at second 30 (UTC)"),
        ("15 0-20 9 * * *", "Minutes 0 through 20, hour 9 at second 15 (UTC)"),
        ("5 0 * * * *", "Every hour at minute 0 and 5 seconds (UTC)"),
        ("0,30 * * * * *", "Seconds 0 and 30 (UTC)"),
        ("0,30 * * * *", "Minutes 0 and 30 (UTC)"),
        ("0-4 * * * *", "Minutes 0 through 4 (UTC)"),
        ("10-50/10 * * * *", "Minutes 10, 20, 30, 40 and 50 (UTC)"),
        ("0-40/10 * * * *", "Minutes 0, 10, 20, 30 and 40 (UTC)"),
        ("*/7 * * * *", "Minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 (UTC)"),
        ("0,20 9-17 * * *", "Minutes 0 and 20, hours 9 through 17 (UTC)"),
        ("0 9-14 * * *", "Every day at 09:00, 10:00, 11:00, 12:00, 13:00 and 14:00 (UTC)"),
        ("0 9-15 * * *", "Hours 9 through 15 at minute 0 (UTC)"),
        ("0 9 13 * 0-6", "On day 13 of the month or on any weekday at 09:00 (UTC)"),
        (
            "0 9 * * MON-FRI,SAT#1",
            "On Monday through Friday and the first Saturday of the month at 09:00 (UTC)",
        ),
        ("0 9 * * 1,3#L", "On Monday and the last Wednesday of the month at 09:00 (UTC)"),
        ("0 9 */3 * *", "On every 3rd day of the month from day 1 at 09:00 (UTC)"),
        ("0 9 */4 * *", "On every 4th day of the month from day 1 at 09:00 (UTC)"),
        ("0 9 */11 * *", "On every 11th day of the month from day 1 at 09:00 (UTC)"),
        ("0 9 */12 * *", "On every 12th day of the month from day 1 at 09:00 (UTC)"),
        ("0 9 */21 * *", "On every 21st day of the month from day 1 at 09:00 (UTC)"),
        ("0 9 */23 * *", "On every 23rd day of the month from day 1 at 09:00 (UTC)"),
        (
            "0 9 1W,LW * *",
            "On the weekday nearest day 1 and the last weekday of the month at 09:00 (UTC)",
        ),
        (
            "every P14M from 2026-01-01",
            "Every 1 year and 2 months, counted from 2026-01-01T00:00:00 (UTC)",
        ),
        (
            "every P10D from 2026-01-01",
            "Every 1 week and 3 days, counted from 2026-01-01T00:00:00 (UTC)",
        ),
        ("every 1.5s", "Every 1.5 seconds, counted from 2026-03-01T00:00:00Z (UTC)"),
        ("every 90s", "Every 1 minute and 30 seconds, counted from 2026-03-01T00:00:00Z (UTC)"),
        (
            "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY",
            "Recurrence rule DTSTART:20260101T090000Z RRULE:FREQ=DAILY (UTC)",
        ),
        ("every day at 9:00 and 17:30", "Every day at 09:00 (UTC); and Every day at 17:30 (UTC)"),
    ],
)
def test_descriptions(source: str, sentence: str) -> None:
    """One sentence that a person can check."""
    assert parse(source, now=NOW).describe() == sentence


def test_description_of_quartz_and_fixed_delay() -> None:
    """Days before the last, and a pause after each end."""
    quartz = parse({"type": "cron", "expr": "0 0 0 L-3 * ?", "dialect": "quartz"})
    near = parse({"type": "cron", "expr": "0 0 0 L-3W * ?", "dialect": "quartz"})
    pause = parse({"type": "interval", "every": "5m", "mode": "fixed_delay"}, now=NOW)

    assert quartz.describe() == "On 3 days before the last of the month at 00:00 (UTC)"
    assert near.describe() == "On the weekday nearest L-3 of the month at 00:00 (UTC)"
    assert pause.describe() == "5 minutes after the end of the last run (UTC)"


def codes(source: object, zone: str = "UTC", **more: object) -> list[str]:
    schedule = parse(source, timezone=zone, now=NOW, **more)  # type: ignore[arg-type]
    return [warned.code for warned in schedule.warnings(NOW)]


@pytest.mark.parametrize(
    ("source", "zone", "expected"),
    [
        ("0 12 * * *", "Europe/Berlin", []),
        ("0 0 13 * 5", "UTC", ["day_fields_both_set"]),
        ("0 0 13 * *", "UTC", []),
        ("0 0 31 * *", "UTC", ["short_months"]),
        ("0 0 30W * *", "UTC", ["short_months"]),
        ("0 0 28 * *", "UTC", []),
        ("0 0 */2 * *", "UTC", []),
        ("*/7 * * * *", "UTC", ["uneven_step"]),
        ("*/15 * * * *", "UTC", []),
        ("*/5 * * * * *", "UTC", ["too_frequent"]),
        ("every 30s", "UTC", ["too_frequent"]),
        ("30 2 * * *", "Europe/Berlin", ["dst_gap", "dst_overlap", "dst_gap"]),
        ("30 2 * * *", "Asia/Tokyo", []),
        ("0 0 * * *", "America/Santiago", ["dst_gap"]),
        ("0 0 0 1 1 ? 2020", "UTC", ["never_fires"]),
        ("manual", "UTC", []),
    ],
)
def test_warnings(source: str, zone: str, expected: list[str]) -> None:
    """Only what may surprise, looking 400 days ahead."""
    assert codes(source, zone) == expected


def test_warnings_in_words() -> None:
    """Each says when and why."""
    moved = parse("30 2 * * *", timezone="Europe/Berlin").warnings(NOW)
    skipped = parse("30 2 * * *", timezone="Europe/Berlin", dst={"gap": "skip"}).warnings(NOW)
    twice = parse("30 2 * * *", timezone="Europe/Berlin", dst={"overlap": "both"}).warnings(NOW)
    stepped = parse("0 0 */2 * MON").warnings(NOW)

    assert moved[0].at == utc("2026-03-29T01:00")
    assert moved[0].detail == "2026-03-29T02:30:00 does not exist: runs at 03:00"
    assert moved[1].detail == "2026-10-25 02:30 comes twice: runs once"
    assert skipped[0].detail == "2026-03-29T02:30:00 does not exist: skipped"
    assert [warned.detail for warned in twice][1] == "2026-10-25 02:30 comes twice"
    assert "cron daemons read a stepped star" in stepped[0].detail
    both = parse({"type": "cron", "expr": "0 0 1 * MON", "day_match": "and"}).warnings(NOW)
    assert both[0].detail.endswith("both must match")


def test_preview() -> None:
    """The answer of the preview endpoint, as plain values."""
    schedule = parse("30 2 * * *", timezone="Europe/Berlin", dst={"gap": "skip"})
    shown = preview(schedule, utc("2026-03-28T12:00"), 2)

    assert shown["canonical"] == "cron: 30 2 * * * @ Europe/Berlin"
    assert shown["dialect"] == "unix"
    assert shown["description"] == "Every day at 02:30 (Europe/Berlin)"
    assert shown["occurrences"] == [
        {
            "utc": "2026-03-29T01:30:00Z",
            "local": "2026-03-29T02:30:00",
            "offset": "+02:00",
            "flags": ["dst_gap_skipped"],
        },
        {
            "utc": "2026-03-30T00:30:00Z",
            "local": "2026-03-30T02:30:00",
            "offset": "+02:00",
            "flags": [],
        },
        {
            "utc": "2026-03-31T00:30:00Z",
            "local": "2026-03-31T02:30:00",
            "offset": "+02:00",
            "flags": [],
        },
    ]
    assert shown["warnings"][0]["code"] == "dst_gap"
    assert shown["warnings"][0]["at"] == "2026-03-29T01:30:00Z"
    assert shown["per_day"] == pytest.approx(29 / 30, abs=0.001)
    assert shown["min_gap"] == 86_400.0
    assert shown["never"] is False


def test_preview_of_what_never_fires_again() -> None:
    """Empty, and said so; a manual schedule is not `never`."""
    gone = preview(parse("2020-01-01T00:00Z"), NOW)
    assert (gone["occurrences"], gone["never"], gone["min_gap"]) == ([], True, None)
    assert gone["dialect"] is None
    assert preview(parse("manual"), NOW)["never"] is False


def test_preview_within_a_horizon() -> None:
    """No further than asked, excluded dates included and flagged."""
    closed = {"exclude": [{"name": "x", "dates": ["2026-03-02"]}]}
    schedule = parse({"type": "cron", "expr": "0 9 * * *", "calendars": closed})
    shown = preview(schedule, NOW, 50, utc("2026-03-04T00:00"))
    assert [entry["flags"] for entry in shown["occurrences"]] == [[], ["calendar_excluded"], []]
