"""Fires as an iCalendar file."""

from datetime import UTC, datetime, timedelta, timezone

from dateutil.rrule import rrulestr  # the types of icalendar are dates; this reads instants

from betimes.importers.ics import LINE_BYTES, Plan, write_ics

STAMP = datetime(2026, 11, 16, 12, tzinfo=UTC)


def plan(name: str, *fires: datetime, says: str = "every day") -> Plan:
    return Plan(id="job_01", name=name, says=says, fires=fires)


def test_every_fire_is_an_event_in_utc() -> None:
    oslo = timezone(timedelta(hours=1))
    text = write_ics(
        [
            plan(
                "report",
                datetime(2026, 12, 1, 9, tzinfo=oslo),
                datetime(2026, 12, 2, 8, tzinfo=UTC),
            )
        ],
        stamp=STAMP,
    )
    assert text.count("BEGIN:VEVENT") == 2
    assert "DTSTART:20261201T080000Z\r\n" in text
    assert "UID:job_01-20261202T080000Z@betimes\r\n" in text
    assert text.startswith("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n")
    assert text.endswith("END:VCALENDAR\r\n")


def test_somebody_elses_reader_finds_the_same_instants() -> None:
    fires = [datetime(2026, 3, 29, hour, tzinfo=UTC) for hour in range(0, 24, 3)]
    text = write_ics([plan("a", *fires)], stamp=STAMP)
    starts = [line for line in text.split("\r\n") if line.startswith("DTSTART")]
    read = rrulestr("\n".join(f"RDATE:{one.partition(':')[2]}" for one in starts), forceset=True)
    assert list(read) == fires


def test_what_means_something_there_is_escaped() -> None:
    text = write_ics([plan("a;b,c\\d", STAMP, says="one\ntwo")], stamp=STAMP)
    assert "SUMMARY:a\\;b\\,c\\\\d\r\n" in text
    assert "DESCRIPTION:one\\ntwo\r\n" in text


def test_long_lines_are_folded_between_letters() -> None:
    name = "räksmörgås-" * 20
    text = write_ics([plan(name, STAMP)], stamp=STAMP)
    lines = text.split("\r\n")
    assert max(len(line.encode()) for line in lines) <= LINE_BYTES
    assert f"SUMMARY:{name}" in text.replace("\r\n ", "")


def test_nothing_is_a_calendar_without_events() -> None:
    assert "VEVENT" not in write_ics([], stamp=STAMP)
