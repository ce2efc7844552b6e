"""What a schedule wants when the clock jumps.

Gap: the wall clock skips a time that a schedule names. `next` runs at the first instant after the
gap, `skip` not at all, `shift` later by the size of the gap.
Overlap: the wall clock shows a time twice. `first`, `second` or `both` passes count.

Unsaid, the kind of schedule decides: a *fixed* cron job (its second, minute and hour begin with no
`*`) is caught up and never doubled, as Debian's cron does; a *wild* one follows real time, every
instant whose wall clock reads a match; intervals and recurrence rules shift, as RFC 5545 3.3.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from betimes.domain.errors import BadSchedule

NEXT, SKIP, SHIFT = "next", "skip", "shift"
FIRST_PASS, SECOND_PASS, BOTH = "first", "second", "both"
GAPS = (NEXT, SKIP, SHIFT)
OVERLAPS = (FIRST_PASS, SECOND_PASS, BOTH)


@dataclass(frozen=True, slots=True)
class Dst:
    """A choice for gap and overlap; None leaves it to the kind of schedule."""

    gap: str | None = None
    overlap: str | None = None

    def over(self, default: "Dst") -> "Dst":
        """This choice, with the unsaid filled in."""
        return Dst(self.gap or default.gap, self.overlap or default.overlap)

    def to_dict(self) -> dict[str, str]:
        """Only what was said."""
        said = {"gap": self.gap, "overlap": self.overlap}
        return {key: value for key, value in said.items() if value is not None}


UNSAID = Dst()
FIXED = Dst(NEXT, FIRST_PASS)
WILD = Dst(SKIP, BOTH)
COMPATIBLE = Dst(SHIFT, FIRST_PASS)


def read_dst(source: object) -> Dst:
    """A policy from its members, or from nothing."""
    if source is None:
        return UNSAID
    if isinstance(source, Dst):
        return source
    if not isinstance(source, Mapping):
        raise BadSchedule(
            f"expected dst as an object with gap and overlap, got {type(source).__name__}",
            pointer="/dst",
        )
    unknown = sorted(str(key) for key in source if key not in {"gap", "overlap"})
    if unknown:
        raise BadSchedule(
            f"expected dst members gap and overlap, got {unknown[0]!r}", pointer="/dst"
        )
    return Dst(
        _choice(source.get("gap"), GAPS, "gap"), _choice(source.get("overlap"), OVERLAPS, "overlap")
    )


def _choice(value: object, choices: tuple[str, ...], name: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and value in choices:
        return value
    raise BadSchedule(
        f"expected dst.{name} out of {', '.join(choices)}, got {value!r}", pointer=f"/dst/{name}"
    )
