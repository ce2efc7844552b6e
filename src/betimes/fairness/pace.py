"""Spreading a backlog over time, so that what is on time stays on time. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta


def paced(count: int, *, start: datetime, per_second: float) -> Iterator[datetime]:
    """When each of `count` late runs may become visible, evenly, beginning at `start`."""
    if per_second <= 0:
        raise ValueError(f"a pace is positive, got {per_second} per second")
    gap = timedelta(seconds=1 / per_second)
    for number in range(count):
        yield start + number * gap


def drained_at(count: int, *, start: datetime, per_second: float) -> datetime:
    """An estimate of when a backlog is through."""
    return start + timedelta(seconds=count / per_second)
