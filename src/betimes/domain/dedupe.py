"""Business keys: what a caller says about doing the same thing twice."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, unique


@unique
class DedupeForm(StrEnum):
    """What a second creation with the same key means; see `betimes.fairness.dedupe`."""

    UNIQUE = "unique"
    THROTTLE = "throttle"
    DEBOUNCE = "debounce"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dedupe:
    """The key, how it is meant, and for how long it holds after the creation."""

    key: str
    window: timedelta | None = None
    form: DedupeForm = DedupeForm.UNIQUE
