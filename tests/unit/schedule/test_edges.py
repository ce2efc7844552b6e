"""Small promises at the edges of the room."""

from datetime import UTC, datetime, timedelta

import pytest

from betimes.domain.errors import BadSchedule
from betimes.schedule import FireTable, ScheduleCache, import_calendar, parse, preview
from betimes.schedule.moment import to_instant

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_fire_that_is_moved_keeps_the_offset_of_its_wall_clock() -> None:
    members = {"type": "cron", "expr": "0 9 * * *", "timezone": "Europe/Stockholm"}
    moved = parse({**members, "jitter": "PT10M"}, seed="job").next(NOW)
    assert moved is not None
    assert (moved.offset, moved.flags) == (3600, ("jittered",))
    assert moved.effective > moved.nominal


def test_a_preview_shows_what_is_lost_up_to_where_it_ends() -> None:
    """The night without 02:30 is shown within the span, not beyond the last fire asked for."""
    members = {"type": "cron", "expr": "30 2 * * *", "timezone": "Europe/Stockholm"}
    schedule = parse({**members, "dst": {"gap": "skip"}})
    begin = datetime(2026, 3, 27, 12, tzinfo=UTC)
    until_then = preview(schedule, begin, 100, datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert len(until_then["occurrences"]) == 2
    assert len(preview(schedule, begin, 1, begin + 5 * DAY)["occurrences"]) == 1


def test_folded_lines_of_a_calendar_may_end_as_dos_writes_them() -> None:
    lines = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT",
        "DTSTART;VALUE=DA",
        " TE:20260501",
        "DTEND;VALUE=DATE:20260502",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    read = import_calendar("may", "\r\n".join(lines), 2026, 2026)
    assert read == import_calendar("may", "\n".join(lines), 2026, 2026)
    assert len(read.firsts) == 1


def test_a_table_cuts_each_schedule_where_it_was_told_to() -> None:
    table = FireTable(fires_max=3)
    found = table.fires_between(parse("* * * * *", now=NOW), to_instant(NOW), to_instant(NOW + DAY))
    assert len(found) == 3


def test_a_cache_gives_a_hashed_schedule_to_nobody_else() -> None:
    cache = ScheduleCache(size_max=2)
    stored = '{"type": "cron", "expr": "H H * * *", "timezone": "UTC"}'
    one, other = cache.get(stored, "one"), cache.get(stored, "other")
    assert one.seed == "one"
    assert other.seed == "other"
    assert cache.get(stored, "one") is one
    plain = '{"type": "cron", "expr": "0 0 * * *", "timezone": "UTC"}'
    assert cache.get(plain, "one") is cache.get(plain, "other")
    assert len(cache) == 2


@pytest.mark.parametrize(
    ("member", "pointer"),
    [
        ({"type": "cron", "expr": "99 * * * *"}, "/of/1/expr"),
        ({"type": "text", "expr": "every blue moon"}, "/of/1/expr"),
        ({"type": "cron", "expr": "0 0 * * *", "timezone": "Mars/Base"}, "/of/1/timezone"),
        ({"type": "union", "of": ["0 0 * * *", "99 * * * *"]}, "/of/1/of/1/expr"),
        ("99 * * * *", "/of/1/expr"),
    ],
)
def test_what_is_wrong_in_a_union_is_pointed_at(member: object, pointer: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse({"type": "union", "of": ["0 0 * * *", member]}, now=NOW)
    assert refused.value.pointer == pointer
