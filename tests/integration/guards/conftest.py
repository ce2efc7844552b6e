"""Guards knocked out one by one.

Every test runs its scenario with the guard in place, where the promise must be kept, and once more
with the guard taken away, where the same promise must be seen to break. So no guard can go missing
without a test that turns red, even while the others still hide the loss.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import LiteralString

import pytest

from betimes.store.database import Database
from betimes.store.queries import load
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from integration.coordinator.conftest import World

IN_PLACE, KNOCKED_OUT = "in place", "knocked out"


class BrokenPromise(AssertionError):
    """What a scenario says when a guard is missing."""


def promise(kept: object, words: str) -> None:
    """Assert, in a way that cannot be mistaken for a scenario that went wrong."""
    if not kept:
        raise BrokenPromise(words)


@contextmanager
def judged(guard: str) -> Iterator[None]:
    """With the guard in place nothing may break; without it something must."""
    if guard == IN_PLACE:
        yield
        return
    with pytest.raises(BrokenPromise):
        yield


@contextmanager
def without(
    guard: str, noun: LiteralString, name: str, pattern: str, instead: str
) -> Iterator[None]:
    """Take a condition out of a statement, if the guard is to be knocked out."""
    queries = load(noun)
    real = queries[name]
    text, places = re.subn(pattern, instead, real.text)
    assert places, f"{name} has no {pattern!r} to knock out"
    if guard == KNOCKED_OUT:
        queries[name] = replace(real, text=text)
    try:
        yield
    finally:
        queries[name] = real


@pytest.fixture(params=[IN_PLACE, KNOCKED_OUT])
def guard(request: pytest.FixtureRequest) -> str:
    """Both ways."""
    way: str = request.param
    return way


@pytest.fixture
def world(database: Database, clock: ManualClock) -> World:
    return World(database, clock, Telemetry(clock=clock))
