"""Alerts: what a rule asks for, and what becomes of an episode. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum, StrEnum, unique
from statistics import median
from types import MappingProxyType

from betimes.domain.errors import Invalid

JOBS_MAX, QUEUES_MAX, TARGETS_MAX = 100, 20, 20
USUAL_OF = 20
"""How many runs say what is usual."""
USUAL_LEAST = 5
WINDOW_MAX = timedelta(days=30)
FOR_MAX = timedelta(days=7)
TENANT = "tenant"


@unique
class Condition(StrEnum):
    """What a rule watches."""

    JOB_FAILED_N = "job_failed_n"
    JOB_LATE = "job_late"
    JOB_MISSED = "job_missed"
    JOB_SLOW = "job_slow"
    NO_SUCCESS_SINCE = "no_success_since"
    DEAD_LETTER_RATE = "dead_letter_rate"
    QUEUE_LAG = "queue_lag"
    QUEUE_DEPTH = "queue_depth"


class Unit(Enum):
    """What a threshold counts."""

    SECONDS = "a duration"
    COUNT = "a whole number"
    FACTOR = "a factor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a condition needs."""

    unit: Unit
    least: float
    most: float
    window: timedelta
    says: str
    jobs: bool | None = None
    """Whether jobs must be named (True), may be (False), or make no sense (None)."""
    queues: bool | None = None


YEAR_SECONDS = 366 * 86_400.0
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
KINDS: Mapping[Condition, Kind] = MappingProxyType(
    {
        Condition.JOB_FAILED_N: Kind(
            unit=Unit.COUNT,
            least=1,
            most=100,
            window=DAY,
            jobs=False,
            says="so many runs of a job in a row are dead",
        ),
        Condition.JOB_LATE: Kind(
            unit=Unit.SECONDS,
            least=1,
            most=YEAR_SECONDS,
            window=DAY,
            jobs=True,
            says="a run of a job has been due for so long and has not begun",
        ),
        Condition.JOB_MISSED: Kind(
            unit=Unit.COUNT,
            least=1,
            most=1_000_000,
            window=HOUR,
            jobs=False,
            says="so many fires of a job passed without a run within the window",
        ),
        Condition.JOB_SLOW: Kind(
            unit=Unit.FACTOR,
            least=1.1,
            most=1_000,
            window=DAY,
            jobs=True,
            says="the last run of a job took so many times as long as usual",
        ),
        Condition.NO_SUCCESS_SINCE: Kind(
            unit=Unit.SECONDS,
            least=1,
            most=30 * 86_400.0,
            window=DAY,
            jobs=True,
            says="no run of a job has succeeded for so long",
        ),
        Condition.DEAD_LETTER_RATE: Kind(
            unit=Unit.COUNT,
            least=1,
            most=10_000,
            window=timedelta(minutes=10),
            queues=False,
            says="so many runs died within the window",
        ),
        Condition.QUEUE_LAG: Kind(
            unit=Unit.SECONDS,
            least=1,
            most=YEAR_SECONDS,
            window=DAY,
            queues=True,
            says="something in a queue has waited for so long",
        ),
        Condition.QUEUE_DEPTH: Kind(
            unit=Unit.COUNT,
            least=1,
            most=100_000,
            window=DAY,
            queues=True,
            says="so many runs wait in a queue",
        ),
    }
)


def check_rule(
    condition: Condition,
    *,
    threshold: float,
    window: timedelta,
    hold: timedelta,
    jobs: int,
    queues: int,
    tags: int = 0,
) -> None:
    """Refuse what the condition cannot be asked."""
    kind = KINDS[condition]
    if not kind.least <= threshold <= kind.most:
        raise Invalid(
            f"expected {kind.unit.value} within {kind.least:g}-{kind.most:g}, got {threshold:g}",
            pointer="/threshold",
        )
    if kind.unit is Unit.COUNT and threshold != int(threshold):
        raise Invalid(f"expected a whole number, got {threshold:g}", pointer="/threshold")
    if not timedelta(seconds=1) <= window <= WINDOW_MAX:
        raise Invalid("expected a window of 1 second to 30 days", pointer="/window")
    if hold > FOR_MAX:
        raise Invalid("expected at most 7 days", pointer="/for")
    if kind.jobs is None and tags:
        raise Invalid(f"{condition} is not about jobs", pointer="/tags")
    for noun, needed, given in (("jobs", kind.jobs, jobs + tags), ("queues", kind.queues, queues)):
        if needed is None and given:
            raise Invalid(f"{condition} is not about {noun}", pointer=f"/{noun}")
        if needed and not given:
            raise Invalid(f"expected the {noun} to watch, got none", pointer=f"/{noun}")


@dataclass(frozen=True, slots=True)
class Finding:
    """The condition holds for a subject, with this value."""

    subject: str
    value: float


def slowness(seconds: Sequence[float]) -> float | None:
    """How many times as long as usual the newest run took; None when nobody can know.

    The newest stands first. Usual is the median of those before it.
    """
    if len(seconds) <= USUAL_LEAST:
        return None
    usual = median(seconds[1 : USUAL_OF + 1])
    return seconds[0] / usual if usual > 0 else None


@unique
class AlertState(IntEnum):
    """The life of an episode; the numbers are stored."""

    PENDING = 0
    FIRING = 1
    RESOLVED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What is known about a rule and a subject."""

    state: AlertState
    since: datetime
    is_told: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an episode becomes, and what is told."""

    state: AlertState
    tell: str | None = None
    is_told: bool = False
    forget: bool = False
    """Whether it never came to anything."""


FIRE, RESOLVE = "fire", "resolve"


def turn(
    episode: Episode | None,
    *,
    holds: bool,
    silenced: bool,
    hold: timedelta,
    now: datetime,
) -> Turn | None:
    """One look at a subject: what changes, or None when nothing does.

    Fires once when the condition has held for long enough, or when a silence ends while it holds;
    resolves once, and only what was told.
    """
    if episode is None:
        if not holds:
            return None
        if hold:
            return Turn(state=AlertState.PENDING)
        return _fired(silenced=silenced)
    if not holds:
        if episode.state is AlertState.PENDING:
            return Turn(state=AlertState.RESOLVED, forget=True)
        # Whoever was told that it began is told that it is over, silence or not.
        told = episode.is_told
        return Turn(state=AlertState.RESOLVED, tell=RESOLVE if told else None, is_told=told)
    if episode.state is AlertState.PENDING:
        return _fired(silenced=silenced) if now - episode.since >= hold else None
    if not episode.is_told and not silenced:
        return _fired(silenced=False)
    return None


def _fired(*, silenced: bool) -> Turn:
    return Turn(state=AlertState.FIRING, tell=None if silenced else FIRE, is_told=not silenced)
