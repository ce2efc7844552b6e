"""The wall clock of the client library, stopped."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from betimes.sdk import ambient, schedules
from betimes.testing.harness.asking import instant


@contextmanager
def frozen(at: str | datetime) -> Iterator[datetime]:
    """Let `task.next()` and whatever else asks for the time be told this one.

    with frozen("2026-03-28T00:00Z"):
        assert nightly_report.next(1)[0].local.hour == 2
    """
    moment = instant(at)
    with told(lambda: moment):
        yield moment


@contextmanager
def told(clock: Callable[[], datetime]) -> Iterator[None]:
    """The same with a clock that may move."""
    before = ambient.wall_clock
    for module in (ambient, schedules):
        module.wall_clock = clock  # type: ignore[attr-defined]  # that is the point
    try:
        yield
    finally:
        for module in (ambient, schedules):
            module.wall_clock = before  # type: ignore[attr-defined]


@contextmanager
def patient(
    pause: Callable[[float], None], apause: Callable[[float], Awaitable[None]]
) -> Iterator[None]:
    """Let something else happen where the client library would sleep."""
    before = ambient.pause, ambient.apause
    ambient.pause, ambient.apause = pause, apause  # type: ignore[assignment]  # that is the point
    try:
        yield
    finally:
        ambient.pause, ambient.apause = before
