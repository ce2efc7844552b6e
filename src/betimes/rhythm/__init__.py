"""Waiting, for services: beats, stopping, backing off and patience, all by the clock one was given.

A room of its own, because every service needs it, `domain` may not know asyncio, and telemetry
is about telling, not about waiting.
"""

from betimes.rhythm.aside import aside, aside_if_large
from betimes.rhythm.attend import attend
from betimes.rhythm.backoff import full_jitter
from betimes.rhythm.beat import Beat, beat
from betimes.rhythm.database_time import DatabaseTime
from betimes.rhythm.race import first_of
from betimes.rhythm.stopping import Stopping
from betimes.rhythm.within import within

__all__ = [
    "Beat",
    "DatabaseTime",
    "Stopping",
    "aside",
    "aside_if_large",
    "attend",
    "beat",
    "first_of",
    "full_jitter",
    "within",
]
