"""robfig/cron, the engine of Kubernetes: its expressions and its fires.

It starts at every instant whose wall clock matches: nothing in the hour that is skipped, both
passes of the hour that is repeated.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from betimes.domain.errors import BadSchedule
from betimes.importers.fields import PLACES, ROBFIG, Field, read_fields
from betimes.importers.verdict import Model
from betimes.importers.vixie import NICKNAMES
from betimes.importers.walls import Pattern, cut, segments, zone_info

EVERY = re.compile(r"@every\s+(?P<span>(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+)")
PIECE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
FIELDS = len(PLACES)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as robfig reads it, and as we write it."""

    text: str
    fields: tuple[Field, ...]

    @property
    def together(self) -> bool:
        """Whether both day fields must match."""
        return self.fields[2].star or self.fields[4].star

    @property
    def members(self) -> dict[str, object]:
        """Our words for it, with its rule for the clock's jumps."""
        found: dict[str, object] = {
            "type": "cron",
            "expr": self.text,
            "dialect": "kubernetes",
            "dst": {"gap": "skip", "overlap": "both"},
        }
        if "*" not in (self.fields[2].text, self.fields[4].text):
            found["day_match"] = "and" if self.together else "or"
        return found

    def is_day(self, day: date) -> bool:
        """Whether it runs on a date."""
        if day.month not in self.fields[3].values:
            return False
        by_month = day.day in self.fields[2].values
        by_week = day.isoweekday() % 7 in self.fields[4].values
        return by_month and by_week if self.together else by_month or by_week


def read_expression(text: str) -> Expression:
    """Five fields, or a nickname other than @every."""
    if re.match(r"(CRON_)?TZ=", text):
        raise BadSchedule("a zone inside the schedule is refused by Kubernetes; use `timeZone`")
    if text.startswith("@"):
        if text not in NICKNAMES:
            raise BadSchedule(f"{text!r} is no nickname that Kubernetes knows")
        text = NICKNAMES[text]
    parts = text.split()
    if len(parts) != FIELDS:
        raise BadSchedule(f"Kubernetes reads five fields, got {len(parts)}")
    fields = read_fields(parts, ROBFIG)
    return Expression(" ".join(field.text for field in fields), tuple(fields))


def every_seconds(text: str) -> float | None:
    """The period of `@every`, or None for what is none; robfig rounds to whole seconds."""
    found = EVERY.fullmatch(text.strip())
    if found is None:
        return None
    total = sum(float(number) * SECONDS[unit] for number, unit in PIECE.findall(found["span"]))
    return float(max(1, int(total)))


def model(expression: Expression, timezone: str) -> Model:
    """The instants at which Kubernetes starts a job."""
    pattern = Pattern(
        tuple(sorted(expression.fields[0].values)),
        tuple(sorted(expression.fields[1].values)),
        expression.is_day,
    )

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        return cut(segments(zone_info(timezone), after, until), pattern)

    return between
