"""Shadow: our fires beside those of the source's own rules, before anything is trusted."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from betimes.importers.verdict import Verdict
from betimes.schedule import Budget, parse
from betimes.schedule.moment import to_datetime, to_instant

COMPARED_MAX = 1_200_000
"""Twice a fire each minute of a year, with room."""

WALKED_MAX = 60_000
"""Fires of a model that asks somebody else's library for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs in a span.

    `missing` fires are the source's and not ours, `extra` ours and not the source's; `doubled` are
    instants at which the source starts the command more than once, and we once.
    """

    place: str
    name: str
    until: datetime
    ours: int
    theirs: int
    missing: tuple[datetime, ...]
    extra: tuple[datetime, ...]
    doubled: tuple[datetime, ...]

    @property
    def agrees(self) -> bool:
        """Whether every fire is at the same time, and once."""
        return not (self.missing or self.extra or self.doubled)


def compare(verdict: Verdict, after: datetime, until: datetime) -> Comparison | None:
    """The fires of both in (after, until]; None for what is not imported or has no model.

    A model that walks is followed for so many fires only; `until` of the answer says how far.
    """
    if verdict.job is None or verdict.model is None:
        return None
    most = WALKED_MAX if verdict.walks else COMPARED_MAX
    found = list(islice(verdict.model(after, until), most))
    if len(found) == most:
        until = found[-1]
    theirs = Counter(one.astimezone(UTC) for one in found)
    schedule = parse(verdict.job["schedule"], now=after, seed=str(verdict.job["name"]))
    # A whole year at once, on the machine of whoever asks: as many steps as it has fires.
    budget = Budget(COMPARED_MAX)
    instants = schedule.instants(to_instant(after), to_instant(until), COMPARED_MAX, budget=budget)
    ours = {to_datetime(instant) for instant in instants}
    return Comparison(
        place=verdict.place,
        name=str(verdict.job["name"]),
        until=until,
        ours=len(ours),
        theirs=theirs.total(),
        missing=tuple(sorted(set(theirs) - ours)),
        extra=tuple(sorted(ours - set(theirs))),
        doubled=tuple(sorted(one for one, count in theirs.items() if count > 1)),
    )
