"""Spreading a backlog over time, so that what is on time stays on time. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil


def paced(count: int, *, start: datetime, per_second: float) -> Iterator[datetime]:
    """When each of `count` late runs may become visible, evenly, beginning at `start`."""
    if per_second <= 0:
        raise ValueError(f"a pace is positive, got {per_second} per second")
    for number in range(count):
        # Each place from the start and rounded up: a rounded gap, added up, would run ahead.
        yield start + timedelta(microseconds=ceil(number * 1_000_000 / per_second))


def drained_at(count: int, *, start: datetime, per_second: float) -> datetime:
    """An estimate of when a backlog is through."""
    return start + timedelta(seconds=count / per_second)


def share_of(per_second: float, tenants: int) -> float:
    """What each of the tenants that have a backlog gets of the rate of the cluster."""
    return per_second / max(1, tenants)


def unapproved(so_far: int, fresh: int, *, most: int, waiting: bool) -> int:
    """How many of `fresh` missed runs may go without asking, after `so_far` of the same episode.

    Once an episode waits for approval, everything that joins it waits as well.
    """
    return 0 if waiting else max(0, min(fresh, most - so_far))
