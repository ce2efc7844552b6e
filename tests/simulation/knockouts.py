"""Fixes taken out again, each in the one place where it decides: the simulation must notice.

A guard that nobody misses is not tested. Each knock-out names what must turn red, and the profile
of the seeds among which it has to be found soon.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from betimes.coordinator import pace, sweeper
from betimes.ops import pause
from betimes.store import catchup, sweep
from betimes.store.succeed import Held


@dataclass(frozen=True)
class KnockOut:
    """One fix, taken out."""

    name: str
    profile: str
    within: int
    """So many seeds of the profile may pass before it is found."""
    expected: frozenset[str]
    """At least one of these invariants turns red."""
    patches: tuple[AbstractContextManager[Any], ...]


def _beyond_the_cursor(until: datetime, _cursor: datetime | None) -> datetime:
    return until


def _for_ever(_ms: int) -> datetime:
    return datetime.max.replace(tzinfo=UTC)


def _by_parcel(told: Iterable[Any], good: Iterable[Any]) -> list[Any]:
    ours = {parcel for parcel, _ in good}
    return [one for one in told if one.lease[0] in ours]


async def _unasked(*_: object) -> Mapping[Any, Any]:
    return {}


KNOCK_OUTS = (
    KnockOut(
        "V1: the sweeper looks beyond the cursor of the publisher",
        profile="stuck",
        within=60,
        expected=frozenset({"I25", "fence", "I9", "I1", "roles"}),
        patches=(
            patch.object(sweep, "published_part", _beyond_the_cursor),
            patch.object(sweeper, "instant", _for_ever),
        ),
    ),
    KnockOut(
        "V2: a pass walks over all shards one by one and renews at its end",
        profile="far",
        within=20,
        expected=frozenset({"I13", "I14"}),
        patches=(patch.object(pace, "PacePolicy", lambda: pace.ONE_BY_ONE),),
    ),
    KnockOut(
        "V4: a report is judged by its parcel, not by its fence",
        profile="silent",
        within=80,
        expected=frozenset({"I11"}),
        patches=(patch.object(Held, "valid", staticmethod(_by_parcel)),),
    ),
    KnockOut(
        "V6: a gap is settled without asking which of its fires have an account",
        profile="paused",
        within=120,
        expected=frozenset({"I3", "I4"}),
        patches=(
            patch.object(catchup, "accounted_for", _unasked),
            patch.object(pause, "accounted_for", _unasked),
        ),
    ),
)
