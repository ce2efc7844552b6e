"""Who is let in through the gates in front of them. Pure."""

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
Claims = Mapping[K, Sequence[datetime]]
"""For each gate the ranks of those who are on their way to it, best first."""


def admit(
    wanting: Sequence[tuple[datetime, Sequence[K]]], room: Mapping[K, int], claims: Claims[K]
) -> tuple[list[list[K]], dict[K, int]]:
    """Which gates keep each one out, best rank first, and the room that is left.

    Whoever wants through several gates gets a place in all of them or in none, and never one that
    is kept for somebody with a better rank.
    """
    left = dict(room)
    answers: list[list[K]] = []
    for rank, keys in wanting:
        full = [key for key in keys if left[key] <= bisect_left(claims.get(key, ()), rank)]
        if not full:
            for key in keys:
                left[key] -= 1
        answers.append(full)
    return answers, left
