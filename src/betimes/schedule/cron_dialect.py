"""Dialects: the same five stars, read by different programs.

An expression is stored together with its dialect, because weekday numbers, the meaning of two
restricted day fields and the order of the fields differ without any visible sign.
"""

from dataclasses import dataclass
from types import MappingProxyType

from betimes.domain.errors import BadSchedule

FIVE = ("minute", "hour", "day", "month", "weekday")
SECONDS_FIRST = ("second", *FIVE)
YEAR_LAST = (*FIVE, "year")
SEVEN = ("second", *FIVE, "year")

OR = "or"
AND = "and"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one program reads cron.

    `sunday` is its number for Sunday; `seven` says that 7 is Sunday too. `question` demands a `?`
    in exactly one day field. `wrap` lets a range run over its end (`22-2`). `rich` adds `L-n` and
    a bare `L` for the weekday.
    """

    name: str
    layouts: tuple[tuple[str, ...], ...]
    sunday: int = 0
    seven: bool = False
    day_match: str = OR
    question: bool = False
    wrap: bool = False
    rich: bool = False

    def layout(self, count: int) -> tuple[str, ...]:
        """The names of the fields of an expression with so many of them."""
        for layout in self.layouts:
            if len(layout) == count:
                return layout
        counts = " or ".join(str(len(layout)) for layout in self.layouts)
        raise BadSchedule(
            f"expected {counts} cron fields in dialect {self.name}, got {count}", pointer="/expr"
        )

    @property
    def weekday_first(self) -> int:
        """The smallest weekday number."""
        return 1 if self.sunday == 1 else 0

    def weekday(self, number: int) -> int:
        """A weekday number of this dialect as ours, Sunday 0."""
        return (number - self.sunday) % 7


_ALL = (
    Dialect("unix", (FIVE, SECONDS_FIRST, SEVEN), seven=True),
    Dialect("quartz", (SECONDS_FIRST, SEVEN), sunday=1, question=True, wrap=True, rich=True),
    Dialect("aws", (YEAR_LAST,), sunday=1, question=True, wrap=True, rich=True),
    Dialect("celery", (FIVE,), day_match=AND, wrap=True),
    Dialect("apscheduler3", (FIVE,), sunday=6, day_match=AND),
    Dialect("kubernetes", (FIVE,)),
)
DIALECTS = MappingProxyType({dialect.name: dialect for dialect in _ALL})


def dialect(name: str) -> Dialect:
    """The dialect of that name."""
    found = DIALECTS.get(name)
    if found is None:
        known = ", ".join(DIALECTS)
        raise BadSchedule(
            f"expected a cron dialect out of {known}, got {name[:40]!r}", pointer="/dialect"
        )
    return found
