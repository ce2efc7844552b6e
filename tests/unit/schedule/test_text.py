"""Plain words: every phrase has one reading, or none."""

from datetime import datetime

import pytest

from betimes.domain.errors import AmbiguousText, BadSchedule, TooLarge
from betimes.schedule import fire_times
from betimes.schedule.parse import shorthand
from betimes.schedule.text import read_text
from betimes.schedule.text_words import Clock, read_times
from facts_kit import parse, utc

NOW = utc("2026-03-28T12:00")  # a Saturday

READ = [
    ("every minute", "* * * * *"),
    ("every hour", "0 * * * *"),
    ("hourly", "0 * * * *"),
    ("every second", "* * * * * *"),
    ("every 15 minutes", "*/15 * * * *"),
    ("every 60 minutes", "0 * * * *"),
    ("every 30 seconds", "*/30 * * * * *"),
    ("every 6 hours", "0 */6 * * *"),
    ("every 24 hours", "0 0 * * *"),
    ("every hour at :15", "15 * * * *"),
    ("every hour at minute 5", "5 * * * *"),
    ("every day at 9:30", "30 9 * * *"),
    ("Every Day At 9:30.", "30 9 * * *"),
    ("daily at 17:05", "5 17 * * *"),
    ("at 9am every day", "0 9 * * *"),
    ("every day at noon", "0 12 * * *"),
    ("every day at midnight", "0 0 * * *"),
    ("every day at 12am", "0 0 * * *"),
    ("every day at 12:30 pm", "30 12 * * *"),
    ("every day at 9am, 1pm and 5pm", "0 9,13,17 * * *"),
    ("every day at 17", "0 17 * * *"),
    ("every weekday at 9:30", "30 9 * * MON-FRI"),
    ("weekdays at 9:30", "30 9 * * MON-FRI"),
    ("every weekend at 10:00", "0 10 * * SAT,SUN"),
    ("every monday at 8am", "0 8 * * MON"),
    ("mondays at 8am", "0 8 * * MON"),
    ("on mondays and thursdays at 8am", "0 8 * * MON,THU"),
    ("every monday, wednesday and friday at 18:00", "0 18 * * MON,WED,FRI"),
    ("every tue and thu at 7:15", "15 7 * * TUE,THU"),
    ("at 6pm every friday", "0 18 * * FRI"),
    ("monday to friday at 8am", "0 8 * * MON-FRI"),
    ("every monday through thursday at 8am", "0 8 * * MON-THU"),
    ("first monday of the month at noon", "0 12 * * MON#1"),
    ("the last friday of every month at 5pm", "0 17 * * FRI#L"),
    ("on the 3rd tuesday of each month at 10:00", "0 10 * * TUE#3"),
    ("last day of the month at 18:00", "0 18 L * *"),
    ("first day of the month at 6am", "0 6 1 * *"),
    ("last weekday of the month at 16:00", "0 16 LW * *"),
    ("first weekday of every month at 16:00", "0 16 1W * *"),
    ("first day of the quarter at 9:00", "0 9 1 1,4,7,10 *"),
    ("last day of every quarter at 9:00", "0 9 L 3,6,9,12 *"),
    ("on the 15th of every month at 9am", "0 9 15 * *"),
    ("on the 1st and 15th of the month at 6pm", "0 18 1,15 * *"),
    ("every month on the 1st at 0:05", "5 0 1 * *"),
    ("every year on 24 december at 17:00", "0 17 24 12 *"),
    ("yearly on july 4th at noon", "0 12 4 7 *"),
    ("every 1st of may at 10:00", "0 10 1 5 *"),
]


@pytest.mark.parametrize(("phrase", "expression"), READ)
def test_phrases(phrase: str, expression: str) -> None:
    """A phrase is stored as the cron expression it stands for, and echoed so."""
    schedule = parse({"type": "text", "expr": phrase}, timezone="Europe/Berlin", now=NOW)
    assert schedule.to_dict()["expr"] == expression
    assert schedule.canonical == f"cron: {expression} @ Europe/Berlin"


@pytest.mark.parametrize(
    ("phrase", "moment"),
    [
        ("in 2 hours", "2026-03-28T14:00:00"),
        ("in 1 day", "2026-03-29T11:00:00"),
        ("in 90 minutes", "2026-03-28T13:30:00"),
        ("in 1h30m", "2026-03-28T13:30:00"),
        ("at 5pm on 24 december", "2026-12-24T16:00:00"),
        ("on 24 december at 17:00", "2026-12-24T16:00:00"),
        ("at 5pm on 1 march", "2027-03-01T16:00:00"),
        ("1 march 2028 at 17:00", "2028-03-01T16:00:00"),
        ("at noon on february 29", "2028-02-29T11:00:00"),
        ("tomorrow at 9am", "2026-03-29T07:00:00"),
        ("today at 23:00", "2026-03-28T22:00:00"),
        ("at 9am tomorrow", "2026-03-29T07:00:00"),
    ],
)
def test_phrases_that_happen_once(phrase: str, moment: str) -> None:
    """Read in the zone of the schedule, from the time of creation."""
    found = fire_times(phrase, "Europe/Berlin", NOW, 2, kind="text")
    assert [one.isoformat()[:19] for one in found] == [moment]


def test_different_minutes_make_a_union() -> None:
    """Two times that no one expression can hold."""
    schedule = parse("every day at 9:00 and 17:30", now=NOW)
    assert [fire.nominal.hour for fire in schedule.fires(NOW, limit=3)] == [17, 9, 17]
    assert schedule.kind == "union"


def test_a_zone_in_the_phrase() -> None:
    """`in Europe/Stockholm` at the end says where."""
    schedule = parse("every day at 9:00 in Asia/Tokyo", timezone="UTC", now=NOW)
    assert schedule.timezone == "Asia/Tokyo"
    assert parse("every day at 9:00 in UTC", timezone="Asia/Tokyo", now=NOW).timezone == "UTC"


AMBIGUOUS = [
    "every other day",
    "every other day at 9:00",
    "biweekly",
    "fortnightly",
    "bimonthly",
    "weekly",
    "every week",
    "monthly",
    "yearly",
    "daily",
    "every day",
    "every weekday",
    "every 45 minutes",
    "every 7 hours",
    "every 7 seconds",
    "every 15 minutes between 9 and 5",
    "monday",
    "every monday",
    "on monday at 9:00",
    "next friday at 9:00",
    "every day at 9",
    "every monday at 12",
]


@pytest.mark.parametrize("phrase", AMBIGUOUS)
def test_two_readings_are_refused_with_their_alternatives(phrase: str) -> None:
    """Ask, do not guess; every alternative named can itself be read."""
    with pytest.raises(AmbiguousText) as caught:
        parse({"type": "text", "expr": phrase}, now=NOW)
    assert caught.value.code == "ambiguous_text"
    assert caught.value.alternatives
    for alternative in caught.value.alternatives:
        assert parse(shorthand(alternative), now=NOW).next(NOW) is not None


@pytest.mark.parametrize(
    ("phrase", "readings"),
    [
        ("every day at 9", ("every day at 9am", "every day at 9pm")),
        ("at 9 on 9 december", ("at 9am on 9 december", "at 9pm on 9 december")),
        (
            "every monday at 9, 10:30 and 12",
            ("every monday at 9am, 10:30 and 12am", "every monday at 9pm, 10:30 and 12pm"),
        ),
        ("every 45 minutes", ("every 45m",)),
        ("fridays", ("every friday at 9:00", "0 0 * * FRI")),
        ("every weekday", ("every weekday at 9:00", "0 0 * * MON-FRI")),
        ("every weekend", ("every weekend at 9:00", "0 0 * * SAT,SUN")),
    ],
)
def test_alternatives_are_readings_of_what_was_said(phrase: str, readings: tuple[str, ...]) -> None:
    """Not of some other phrase."""
    with pytest.raises(AmbiguousText) as caught:
        read_text(phrase)
    assert caught.value.alternatives == readings
    assert caught.value.are_readings


@pytest.mark.parametrize(
    ("at", "once"),
    [
        ("2026-11-16T08:59", "2026-11-16T09:00"),
        ("2026-11-16T09:00", "2026-11-23T09:00"),
        ("2026-11-17T08:00", "2026-11-23T09:00"),
        ("2026-11-15T12:00", "2026-11-16T09:00"),
    ],
)
def test_a_single_weekday_is_every_one_or_the_next(at: str, once: str) -> None:
    """Which of them is asked for, nobody can know."""
    with pytest.raises(AmbiguousText) as caught:
        read_text("on monday at 9:00", datetime.fromisoformat(at))
    assert caught.value.alternatives == ("every monday at 9:00", once)
    with pytest.raises(AmbiguousText) as caught:
        read_text("monday at 9")
    assert caught.value.alternatives == ("every monday at 9am",)


def test_examples_are_no_readings() -> None:
    """What lies between two times can be said in more ways than are named."""
    with pytest.raises(AmbiguousText) as caught:
        read_text("every 15 minutes between 9 and 5")
    assert not caught.value.are_readings


def test_accept_first_takes_the_first_reading() -> None:
    """Who asks for it gets the first alternative."""
    schedule = parse({"type": "text", "expr": "weekly", "accept_first": True}, now=NOW)
    assert schedule.to_dict()["expr"] == "0 9 * * MON"
    schedule = parse({"type": "text", "expr": "every other day", "accept_first": True}, now=NOW)
    assert schedule.to_dict()["every"] == "P2D"


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "whenever",
        "every 0 minutes",
        "every day at 25:00",
        "every day at 9:75",
        "every day at 13pm",
        "every day at 0am",
        "every hour at :75",
        "on the 32nd of every month at 9:00",
        "every 31 february at 25:00",
        "on 31 february at 9:00",
        "31 february 2027 at 9:00",
        "in a moment",
        "every d\u00e4y at 9:00",
        "every 1500 minutes",
    ],
)
def test_what_cannot_be_read(phrase: str) -> None:
    """A sentence, never a guess."""
    with pytest.raises(BadSchedule, match="expected"):
        parse({"type": "text", "expr": phrase}, now=NOW)


def test_long_phrases_are_refused() -> None:
    """Before any pattern is tried."""
    with pytest.raises(TooLarge):
        parse({"type": "text", "expr": "every " * 100}, now=NOW)


def test_a_phrase_that_needs_the_time_says_so() -> None:
    """Tomorrow is a matter of today."""
    with pytest.raises(BadSchedule, match="current time"):
        parse({"type": "text", "expr": "tomorrow at 9am"})


@pytest.mark.parametrize(
    "phrase",
    [
        "every \t day  at\t9:30",
        "\tevery day at 9:30. ",
        "EVERY DAY AT 9:30",
        "every day at 9:30...",
    ],
)
def test_blanks_capitals_and_full_stops_mean_nothing(phrase: str) -> None:
    """One blank is as good as many."""
    assert read_text(phrase) == {"type": "cron", "expr": "30 9 * * *"}


@pytest.mark.parametrize("phrase", ["\nevery day at 9:30", "Xevery day at 9:30", "x. day at 9:30"])
def test_other_characters_mean_something(phrase: str) -> None:
    """A line break is no blank."""
    with pytest.raises(BadSchedule, match=r"^expected a phrase such as `every weekday at 9:30`"):
        read_text(phrase)


def test_the_length_of_a_phrase() -> None:
    """256 characters, then no more."""
    longest = "every day at 9:30".ljust(256)
    assert read_text(longest) == {"type": "cron", "expr": "30 9 * * *"}
    with pytest.raises(TooLarge, match=r"^expected at most 256 characters, got 257$") as caught:
        read_text(longest + " ")
    assert caught.value.pointer == "/expr"


def test_a_date_without_a_year_is_the_next_one() -> None:
    """Later than now; 29 February may be eight years away."""
    now = datetime(2026, 12, 24, 15, 30)  # noqa: DTZ001 -- a wall clock
    before_2100 = datetime(2096, 3, 1)  # noqa: DTZ001

    assert read_text("24 december at 15:30", now)["at"] == "2027-12-24T15:30:00"
    assert read_text("24 december at 15:31", now)["at"] == "2026-12-24T15:31:00"
    assert read_text("29 february at 9:00", before_2100)["at"] == "2104-02-29T09:00:00"


def test_some_phrases_need_to_know_the_time() -> None:
    """Said rather than guessed."""
    with pytest.raises(BadSchedule, match=r"^expected the current time to read this") as caught:
        read_text("tomorrow at 9:00")
    assert caught.value.pointer == "/expr"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", (0, 0)), ("13", (13, 0)), ("23:59", (23, 59)), ("12am", (0, 0)), ("12:05 pm", (12, 5))],
)
def test_times_of_day(text: str, expected: tuple[int, int]) -> None:
    """Bare hours have one reading at midnight and in the afternoon."""
    assert read_times(text) == [Clock(*expected)]


@pytest.mark.parametrize("text", ["24", "24:00", "9h", "0pm", "13am"])
def test_no_times_of_day(text: str) -> None:
    """Said with what was got."""
    with pytest.raises(BadSchedule, match=f"such as 9:30 or 5pm, got '{text}'$"):
        read_times(text)


@pytest.mark.parametrize("hour", [1, 12])
def test_bare_hours_with_two_readings(hour: int) -> None:
    """Morning or afternoon?"""
    with pytest.raises(AmbiguousText) as caught:
        read_times(str(hour))
    assert caught.value.alternatives == (f"{hour}am", f"{hour}pm")


def test_the_last_day_a_month_can_have() -> None:
    """31 is a day, 0 and 32 are not."""
    assert read_text("on the 31st of every month at 9:00")["expr"] == "0 9 31 * *"
