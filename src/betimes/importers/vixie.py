"""Vixie's cron, as Debian runs it: its expressions, and the minutes in which it starts them.

Wild jobs (minute or hour begins with a star) follow the clock. Fixed jobs whose minutes the clock
jumps over are started right after the jump, once for each minute that was skipped; when the clock
goes back, they are not started again. Jumps of three hours and more are corrections: everything
follows the new time at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from betimes.domain.errors import BadSchedule
from betimes.importers.fields import VIXIE, Field, read_fields
from betimes.importers.verdict import Model
from betimes.importers.walls import MINUTE, Pattern, Segment, cut, segments, zone_info

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
CORRECTION = timedelta(hours=3)
REBOOT = "@reboot"


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as cron reads it, and as we write it."""

    text: str
    fields: tuple[Field, ...]

    @property
    def wild(self) -> bool:
        """Whether it follows the clock."""
        return self.fields[0].star or self.fields[1].star

    @property
    def together(self) -> bool:
        """Whether both day fields must match, which a star at the front of one demands."""
        return self.fields[2].star or self.fields[4].star

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about it."""
        return tuple(note for field in self.fields for note in field.notes)

    @property
    def members(self) -> dict[str, str]:
        """Our words for it; `day_match` where ours would be read otherwise."""
        found = {"type": "cron", "expr": self.text, "dialect": "unix"}
        plain = "*" in (self.fields[2].text, self.fields[4].text)
        if not plain:
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
    """Five fields, or a nickname."""
    if text.startswith("@"):
        if text == REBOOT:
            raise BadSchedule(
                "@reboot is bound to the start of one machine; let its service manager start it"
            )
        if text not in NICKNAMES:
            raise BadSchedule(f"{text!r} is no nickname of cron ({', '.join(NICKNAMES)})")
        text = NICKNAMES[text]
    fields = read_fields(text.split(), VIXIE)
    return Expression(" ".join(field.text for field in fields), tuple(fields))


def model(expression: Expression, timezone: str) -> Model:
    """The minutes in which Debian's cron starts a command."""
    pattern = Pattern(
        tuple(sorted(expression.fields[0].values)),
        tuple(sorted(expression.fields[1].values)),
        expression.is_day,
    )

    def between(after: datetime, until: datetime) -> Iterator[datetime]:
        parts = segments(zone_info(timezone), after, until)
        if expression.wild:
            return cut(parts, pattern)
        return _fixed(parts, pattern)

    return between


def _fixed(parts: list[Segment], pattern: Pattern) -> Iterator[datetime]:
    """Segment by segment; `told` is how far the wall clock was served."""
    told: datetime | None = None
    for place, part in enumerate(parts):
        last = part.last - MINUTE if place + 1 < len(parts) else part.last
        first = part.first - MINUTE if place else part.first
        if told is not None:
            jump = part.first - parts[place - 1].last
            if timedelta() < jump < CORRECTION:
                for _ in pattern.walls(told, part.first - MINUTE):
                    yield (part.first - part.offset).replace(tzinfo=UTC)
            elif -CORRECTION < jump < timedelta():
                first = max(first, told)
        for wall in pattern.walls(first, last):
            yield (wall - part.offset).replace(tzinfo=UTC)
        told = max(last, told) if told is not None and part.first < told else last
