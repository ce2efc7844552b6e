"""What a second creation with the same business key means. Pure.

unique     while the holder is active, or within the window, the second one is the first one
throttle   within the window after the first, everything is the first one
debounce   within the window the second replaces the first, and the window begins anew
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, unique
from typing import assert_never

from betimes.domain.dedupe import DedupeForm

__all__ = ["DedupeAnswer", "DedupeForm", "Holder", "answer"]


@unique
class DedupeAnswer(StrEnum):
    """What to do with the newcomer."""

    CREATE = "create"
    REUSE = "reuse"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the key: since when, and whether it is still active (not ended)."""

    created_at: datetime
    active: bool
    started: bool


def answer(
    form: DedupeForm, holder: Holder | None, window: timedelta | None, now: datetime
) -> DedupeAnswer:
    """Decide about one creation."""
    if holder is None:
        return DedupeAnswer.CREATE
    within = window is not None and now < holder.created_at + window
    match form:
        case DedupeForm.UNIQUE:
            taken = holder.active or within
            return DedupeAnswer.REUSE if taken else DedupeAnswer.CREATE
        case DedupeForm.THROTTLE:
            return DedupeAnswer.REUSE if within else DedupeAnswer.CREATE
        case DedupeForm.DEBOUNCE:
            # What has started cannot be replaced any more; the newcomer is a run of its own.
            replaces = within and holder.active and not holder.started
            return DedupeAnswer.REPLACE if replaces else DedupeAnswer.CREATE
        case _:
            assert_never(form)
