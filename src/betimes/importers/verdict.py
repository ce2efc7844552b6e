"""What became of one line of a source."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from betimes.domain.errors import NeverFires, Refused
from betimes.schedule import parse

Model = Callable[[datetime, datetime], Iterable[datetime]]
"""The fires of a source by its own rules in (after, until], in UTC; a time may come twice."""

IMPORTED, REFUSED, SETTING = "imported", "refused", "setting"
SLUG_LENGTH = 40
DIGEST_BYTES = 4
SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""Periods without an anchor are only looked at; when they begin does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One line, or one entry, and what it becomes.

    `job` is as the API takes it; without one `reason` says why, unless it only set something for
    the lines below. `paused` says that the source did not run it; `walks` that its model is slow.
    """

    place: str
    source: str
    job: Mapping[str, Any] | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    paused: bool = False
    model: Model | None = field(default=None, compare=False)
    walks: bool = False

    @property
    def kind(self) -> str:
        """In a word."""
        if self.job is not None:
            return IMPORTED
        return REFUSED if self.reason else SETTING


def inside(name: str, verdict: Verdict) -> Verdict:
    """The same verdict with the file that its place is in."""
    return replace(verdict, place=f"{name}: {verdict.place}")


def slug(text: str) -> str:
    """Something that may stand in a name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:SLUG_LENGTH].strip("-") or "job"


def digest(*parts: str) -> str:
    """A few letters that stand for a text, the same in every process."""
    return blake2b("\0".join(parts).encode(), digest_size=DIGEST_BYTES).hexdigest()


def judged(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same verdicts with no name twice, each schedule read as the service will read it."""
    return [_readable(verdict) for verdict in named(verdicts)]


def _readable(verdict: Verdict) -> Verdict:
    if verdict.job is None:
        return verdict
    try:
        parse(verdict.job["schedule"], now=SOME_TIME, seed=str(verdict.job["name"]))
    except NeverFires:
        return replace(
            verdict, job=None, reason="there is no such date: it never ran, nor would it"
        )
    except Refused as refused:
        return replace(verdict, job=None, reason=f"it cannot be said here: {refused.sentence}")
    return verdict


def named(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The same verdicts with no name twice: the second of two equal lines gets a number."""
    seen: dict[tuple[str, str], int] = {}
    found = []
    for verdict in verdicts:
        job = verdict.job
        if job is None:
            found.append(verdict)
            continue
        place = (str(job.get("group", "default")), str(job["name"]))
        seen[place] = count = seen.get(place, 0) + 1
        if count > 1:
            verdict = replace(verdict, job={**job, "name": f"{job['name']}-{count}"})  # noqa: PLW2901 -- the same verdict, renamed
        found.append(verdict)
    return found
