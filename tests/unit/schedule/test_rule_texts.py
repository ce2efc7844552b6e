"""Recurrence texts as people fold, pad and overfill them."""

import pytest

from betimes.domain.errors import Invalid, TooLarge
from betimes.schedule.rrule_syntax import read_recurrence, read_rule

START = "DTSTART:20260101T090000Z"


@pytest.mark.parametrize(
    "text",
    [
        f"{START}\nRRULE:FREQ=DAILY;COUNT=3",
        f"{START}\r\nRRULE:FREQ=DAILY;\r\n COUNT=3",
        f"{START}\nRRULE:FREQ=DAILY;CO\n\tUNT=3",
        f"{START} RRULE:FREQ=DAILY;COUNT=3",
        f"  {START}\t\n\n\t \n RRULE:FREQ=DAILY;COUNT=3 \t".replace("\n RRULE", "\nRRULE"),
        f"{START.lower().replace('t090000z', 'T090000Z')}\nrrule:freq=daily;count=3",
    ],
)
def test_one_rule_in_many_dresses(text: str) -> None:
    """Folded by a blank or a tab, with empty lines, in small letters."""
    recurrence = read_recurrence(text)
    assert (recurrence.rule.frequency, recurrence.rule.count) == ("DAILY", 3)
    assert recurrence.start is not None


@pytest.mark.parametrize(
    "text",
    [
        "DTSTART;TZID=A:B:20260101T090000\nRRULE:FREQ=DAILY",
        "RRULE:FREQ=DAILY;COUNT=1=2",
        "DTSTART:20261301T090000Z\nRRULE:FREQ=DAILY",
        f"{START}\nRRULE:FREQ=DAILY;UNTIL=20261301T000000Z",
        f"{START}\fRRULE:FREQ=DAILY",
        "X FREQ=DAILY",
        "FREQ=DAILY;COUNT=" + "9" * 50,
    ],
)
def test_what_is_wrong_is_in_the_expression(text: str) -> None:
    """One colon, one equals sign, times that exist."""
    with pytest.raises(Invalid) as caught:
        read_recurrence(text)
    assert caught.value.pointer == "/expr"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (f"FREQ=DAILY;FREQ=DAILY;X={'Y' * 90}", 80),
        (f"FREQ=DAILY;COUNT=1;UNTIL=20260101T000000Z;BYMONTH={'1,' * 40}1", 80),
        (f"FREQ=MONTHLY;BYWEEKNO={'1,' * 40}1", 40),
        (f"FREQ=MONTHLY;BYSETPOS={'1,' * 40}1", 40),
        ("FREQ=DAILY;INTERVAL=" + "9" * 50, 40),
    ],
)
def test_long_rules_are_quoted_in_part(text: str, quoted: int) -> None:
    """As much as shows what is meant."""
    with pytest.raises(Invalid) as caught:
        read_rule(text)
    sentence = str(caught.value)
    assert len(sentence.partition("got ")[2]) == quoted + 2


def test_the_largest_rules() -> None:
    """16,384 characters, 500 dates, an interval of 100,000."""
    dates = ",".join(["20260102T090000Z"] * 500)
    longest = f"{START}\nRRULE:FREQ=DAILY;INTERVAL=100000\nEXDATE:{dates}".ljust(16_384)
    recurrence = read_recurrence(longest)

    assert len(recurrence.removed) == 500
    assert recurrence.rule.interval == 100_000
    with pytest.raises(TooLarge, match=r"^expected at most 16384 characters, got 16385$") as caught:
        read_recurrence(longest + " ")
    assert caught.value.pointer == "/expr"
    for name in ("EXDATE", "RDATE"):
        text = f"{START}\nRRULE:FREQ=DAILY\n{name}:{dates},20260103T090000Z"
        with pytest.raises(
            TooLarge, match=f"^expected at most 500 dates in {name}, got 501$"
        ) as over:
            read_recurrence(text)
        assert over.value.pointer == "/expr"


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("BYMONTH", (1, 12)),
        ("BYMONTHDAY", (-31, 31)),
        ("BYYEARDAY", (-366, 366)),
        ("BYWEEKNO", (-53, 53)),
        ("BYHOUR", (0, 23)),
        ("BYMINUTE", (0, 59)),
        ("BYSECOND", (0, 59)),
    ],
)
def test_ends_of_lists(part: str, values: tuple[int, int]) -> None:
    """Both ends are members."""
    text = f"FREQ=YEARLY;{part}={values[1]},{values[0]}"
    assert values in vars_of(read_rule(text))


def vars_of(rule: object) -> list[object]:
    return [getattr(rule, name) for name in type(rule).__slots__]  # type: ignore[attr-defined]


def test_numbered_weekdays_of_a_year() -> None:
    """The 53rd is the last that a year may have."""
    assert read_rule("FREQ=YEARLY;BYDAY=53MO,-53TU,+1WE").by_day == ((53, 1), (-53, 2), (1, 3))


def test_dates_need_not_say_that_they_are() -> None:
    """VALUE=DATE is allowed and not required, as most programs write it."""
    said = read_recurrence(
        "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20260102"
    )
    unsaid = read_recurrence("DTSTART:20260101\nRRULE:FREQ=DAILY\nEXDATE:20260102")
    assert said == unsaid
    assert len(said.removed_dates) == 1
