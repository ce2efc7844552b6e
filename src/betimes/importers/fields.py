"""Cron fields as other programs read them: text in, numbers out, or the reason why not.

Each program has a grammar of its own; what they share is here. These readers are the source's, not
ours: what they refuse never ran, and what they accept is then said in our words.
"""

import re
from dataclasses import dataclass

from betimes.domain.errors import BadSchedule

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NAMES = ("minute", "hour", "day of month", "month", "day of week")
TERM = re.compile(
    r"(?:(?P<star>[*?])|(?P<first>[0-9]+|[A-Za-z]+)(?:-(?P<last>[0-9]+|[A-Za-z]+))?)"
    r"(?:/(?P<step>[0-9]+))?"
)
SPECIAL = re.compile(r"L(?:-[0-9]+)?W?|[0-9]+W|(?:[0-9]|[A-Z]{3})(?:L|#[0-9L]+)", re.IGNORECASE)
HASHED = re.compile(r"H(?:\(.*\))?(?:/[0-9]+)?")
DIGITS_MAX = 5
SUNDAY_AGAIN = 7


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a program reads fields.

    `seven` is Sunday again; `question` is another star; `open_step` says that `5/15` goes on to the
    end of the field; `star_by_step` that a stepped star still counts as a star.
    """

    name: str
    seven: bool
    question: bool
    open_step: bool
    star_by_step: bool


VIXIE = Grammar("cron", seven=True, question=False, open_step=False, star_by_step=True)
ROBFIG = Grammar("Kubernetes", seven=False, question=True, open_step=True, star_by_step=False)


@dataclass(frozen=True, slots=True)
class Field:
    """One field, read: its numbers, whether it counts as a star, and how we write it."""

    values: frozenset[int]
    star: bool
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands: its name, its numbers, the names for them."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many numbers there are."""
        return self.high - self.low + 1


PLACES = (
    Place("minute", 0, 59),
    Place("hour", 0, 23),
    Place("day of month", 1, 31),
    Place("month", 1, 12, MONTHS),
    Place("day of week", 0, 6, WEEKDAYS),
)


def read_fields(texts: list[str], grammar: Grammar) -> list[Field]:
    """The five fields of an expression."""
    return [read_field(text, place, grammar) for text, place in zip(texts, PLACES, strict=True)]


def read_field(text: str, place: Place, grammar: Grammar) -> Field:
    """One field: a list of terms."""
    values: set[int] = set()
    written: list[str] = []
    notes: list[str] = []
    star = False
    for number, term in enumerate(text.split(",")):
        found = _term(term, place, grammar)
        values |= found.values
        written.append(found.text)
        notes += found.notes
        # Vixie looks at the first letter of the field, robfig at every term.
        star |= found.star and (number == 0 or not grammar.star_by_step)
    return Field(frozenset(values), star, ",".join(written), tuple(notes))


def _term(term: str, place: Place, grammar: Grammar) -> Field:
    found = TERM.fullmatch(term)
    if found is None or SPECIAL.fullmatch(term) or HASHED.fullmatch(term):
        raise BadSchedule(_why_not(term, place, grammar))
    if found["star"] == "?" and not grammar.question:
        raise BadSchedule(f"{grammar.name} knows no `?` in its {place.name} field")
    step, step_text, notes = _step(found["step"], place, term)
    if found["star"]:
        values = range(place.low, place.high + 1, step)
        star = found["step"] is None or grammar.star_by_step or step == 1
        return Field(frozenset(values), star, f"*{step_text}", notes)
    first = _number(found["first"], place, grammar)
    last = first if found["last"] is None else _number(found["last"], place, grammar)
    if last < first:
        raise BadSchedule(_backwards(term, first, last, place, grammar))
    text = _written(found["first"]) + (f"-{_written(found['last'])}" if found["last"] else "")
    if found["step"] is not None and found["last"] is None:
        if not grammar.open_step:
            raise BadSchedule(
                f"{grammar.name} refuses a step behind a single number ({term!r} in its "
                f"{place.name} field); if it was meant to go on, write "
                f"{first}-{place.high}/{found['step']}"
            )
        last = place.high
    values = range(first, last + 1, step)
    return Field(
        frozenset(_folded(value, place) for value in values), False, text + step_text, notes
    )


def _folded(value: int, place: Place) -> int:
    return 0 if place.names is WEEKDAYS and value == SUNDAY_AGAIN else value


def _written(text: str) -> str:
    return text.lower() if text.isalpha() else str(int(text))


def _step(text: str | None, place: Place, term: str) -> tuple[int, str, tuple[str, ...]]:
    """A step; one wider than its field is written as wide as the field, which means the same."""
    if text is None:
        return 1, "", ()
    step = int(text[:DIGITS_MAX])
    if step == 0:
        raise BadSchedule(f"a step of 0 in its {place.name} field ({term!r}) never comes to an end")
    if step > place.width:
        note = (
            f"a step of {step} is wider than the {place.name} field: {term!r} means its first "
            f"number only, and was taken over so"
        )
        return step, f"/{place.width}", (note,)
    return step, f"/{step}", ()


def _number(text: str, place: Place, grammar: Grammar) -> int:
    if text.isalpha():
        if text.lower() in place.names:
            return place.low + place.names.index(text.lower())
        known = ", ".join(place.names) or "numbers only"
        raise BadSchedule(f"{text!r} is no name of its {place.name} field ({known})")
    number = int(text[:DIGITS_MAX])
    highest = place.high + (1 if grammar.seven and place.names is WEEKDAYS else 0)
    if place.low <= number <= highest:
        return number
    hint = "; Sunday is 0 there" if number == SUNDAY_AGAIN and place.names is WEEKDAYS else ""
    raise BadSchedule(
        f"{number} is outside {place.low}-{highest} of its {place.name} field for "
        f"{grammar.name}{hint}"
    )


def _backwards(term: str, first: int, last: int, place: Place, grammar: Grammar) -> str:
    turned = [*range(first, place.high + 1), *range(place.low, last + 1)]
    return (
        f"a range that runs backwards ({term!r} in its {place.name} field) never matches for "
        f"{grammar.name}; if it was meant to wrap, write {_in_short(turned)}"
    )


def _in_short(numbers: list[int]) -> str:
    """Numbers that go up and then begin again, as two ranges."""
    fall = next(place for place, number in enumerate(numbers) if number < numbers[0])
    return ",".join(
        str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}"
        for part in (numbers[:fall], numbers[fall:])
    )


def _why_not(term: str, place: Place, grammar: Grammar) -> str:
    where = f"its {place.name} field"
    if term == "":
        return f"{where} has an empty place between commas"
    if "~" in term:
        return (
            f"`~` in {where} lets cronie choose at random when it loads the file, and Debian's "
            f"cron take the first number; choose a time, or write H, chosen by the job's name"
        )
    if SPECIAL.fullmatch(term) and place.name.startswith("day"):
        return (
            f"{grammar.name} knows no `L`, `W` and `#` ({term!r} in {where}); Betimes does: "
            f"create this job with `betimes job create`"
        )
    if HASHED.fullmatch(term):
        return f"{grammar.name} knows no `H` ({term!r} in {where}); that is Jenkins"
    return f"{term!r} cannot be read in {where}"
