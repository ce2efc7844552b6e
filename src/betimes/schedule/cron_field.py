"""One cron field: text in, a bit set out.

A term is `*`, a value, a range, any of them with a step, or `H` (hashed). What only the day fields
know (`L`, `W`, `#`) is read in `cron_days`.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b

from betimes.domain.errors import BadSchedule
from betimes.schedule.bounds import YEAR_FIRST, YEAR_LAST
from betimes.schedule.cron_dialect import Dialect

MONTH_NAMES = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
HASHED_DAY_LAST = 28
SATURDAY = 6
SEVEN = 7

TERM = re.compile(
    r"(?P<star>\*)?(?P<first>[0-9]{1,4}|[A-Z]{3})?(?:-(?P<last>[0-9]{1,4}|[A-Z]{3}))?"
    r"(?:/(?P<step>[0-9]{1,4}))?"
)
HASHED = re.compile(
    r"H(?:\((?P<first>[0-9]{1,4})-(?P<last>[0-9]{1,4})\))?(?:/(?P<step>[0-9]{1,4}))?"
)


@dataclass(frozen=True, slots=True)
class Field:
    """The numbers a field may hold, and the names for them."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many values there are, the longest step that makes sense."""
        return self.high - self.low + 1


_FIELDS = {
    "second": Field("second", 0, 59),
    "minute": Field("minute", 0, 59),
    "hour": Field("hour", 0, 23),
    "day": Field("day", 1, 31),
    "month": Field("month", 1, 12, MONTH_NAMES),
    "year": Field("year", YEAR_FIRST, YEAR_LAST),
}


def field(name: str, dialect: Dialect) -> Field:
    """The field of that name as the dialect numbers it."""
    if name != "weekday":
        return _FIELDS[name]
    return Field(name, dialect.weekday_first, dialect.weekday_first + 6, WEEKDAY_NAMES)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the terms of one field; `seed` decides what `H` means."""

    field: Field
    dialect: Dialect
    seed: str
    wrap: bool

    def values(self, term: str) -> list[int]:
        """The values of one term, in the numbers of the dialect."""
        if term.startswith("H"):
            return self._hashed(term)
        found = TERM.fullmatch(term)
        if found is None or not (found["star"] or found["first"]):
            raise self.refusal("a value, a range or a step", term)
        if found["star"] and (found["first"] or found["last"]):
            raise self.refusal("nothing but a step after `*`", term)
        step = self._step(found["step"])
        if found["star"]:
            return list(range(self.field.low, self.field.high + 1, step))
        first = self.number(found["first"])
        if found["last"]:
            return self._range(first, self._end(found["last"], first), step, term)
        if found["step"] is None:
            return [first]
        return list(range(first, max(self.field.high, first) + 1, step))

    def number(self, text: str) -> int:
        """A number or a name within the field."""
        if not text.isdigit():
            return self._named(text)
        number = int(text)
        if self.field.low <= number <= self.highest:
            return number
        raise BadSchedule(
            f'expected cron field "{self.field.name}" within {self.field.low}-{self.highest}, '
            f"got {number}",
            pointer="/expr",
        )

    @property
    def highest(self) -> int:
        """The largest number one may write; 7 is Sunday again where the dialect says so."""
        is_weekday = self.field.name == "weekday"
        return self.field.high + (1 if is_weekday and self.dialect.seven else 0)

    def _named(self, name: str) -> int:
        names = self.field.names
        if name not in names:
            choice = f" or one of {', '.join(names)}" if names else ""
            raise self.refusal(f"a number{choice}", name)
        index = names.index(name)
        if self.field.name == "weekday":
            return self.field.low + (index + self.dialect.sunday - self.field.low) % SEVEN
        return self.field.low + index

    def _end(self, text: str, first: int) -> int:
        """The end of a range: it may be called SUN although Sunday counts as the lowest number."""
        last = self.number(text)
        if text == "SUN" and last < first:
            return last + SEVEN
        return last

    def _range(self, first: int, last: int, step: int, term: str) -> list[int]:
        if last >= first:
            return list(range(first, last + 1, step))
        if not self.wrap or self.field.name == "year":
            raise self.refusal("a range that does not run backwards", term)
        turned = range(first, last + self.field.width + 1, step)
        return [self.field.low + (n - self.field.low) % self.field.width for n in turned]

    def _step(self, text: str | None) -> int:
        if text is None:
            return 1
        step = int(text)
        if 1 <= step <= self.field.width:
            return step
        hint = "; for a fixed rate use an interval, such as `every 90m`" if step else ""
        raise BadSchedule(
            f'expected a step within 1-{self.field.width} in cron field "{self.field.name}", '
            f"got {step}{hint}",
            pointer="/expr",
        )

    def _hashed(self, term: str) -> list[int]:
        found = HASHED.fullmatch(term)
        if found is None or self.field.name == "year":
            raise self.refusal("`H`, `H(a-b)`, `H/n` or `H(a-b)/n`", term)
        low, high = self.field.low, self.field.high
        if self.field.name == "day":
            high = HASHED_DAY_LAST
        if found["first"]:
            low, high = self.number(found["first"]), self.number(found["last"])
        if high < low:
            raise self.refusal("a range that does not run backwards", term)
        if found["step"] is None:
            return [low + self._digest() % (high - low + 1)]
        step = min(self._step(found["step"]), high - low + 1)
        return list(range(low + self._digest() % step, high + 1, step))

    def _digest(self) -> int:
        """A number that depends on the seed and the field alone, the same in every process."""
        text = f"{self.seed}\0{self.field.name}".encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    def refusal(self, expected: str, got: str) -> BadSchedule:
        """What was expected in this field, and what was got."""
        return BadSchedule(
            f'expected {expected} in cron field "{self.field.name}", got {got!r}', pointer="/expr"
        )
