"""What a worker tells tests that wait for it."""

from collections.abc import Callable
from dataclasses import dataclass


def _ignore(_: int) -> None:
    """Nobody is listening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSignals:
    """Called on the event loop of the worker."""

    claimed: Callable[[int], None] = _ignore
    """So many runs were leased by one claim."""
    suspended: Callable[[int], None] = _ignore
    """A handler waits for something; so many do."""
    flushed: Callable[[int], None] = _ignore
    """So many outcomes were written."""
    heard: Callable[[int], None] = _ignore
    """A heartbeat renewed so many leases."""


NO_SIGNALS = WorkerSignals()
