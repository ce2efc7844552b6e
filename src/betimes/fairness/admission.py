"""Who is let in through the gates in front of them. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def admit(wanting: Sequence[Sequence[K]], room: Mapping[K, int]) -> tuple[list[bool], dict[K, int]]:
    """Whether each is let in, in the order given, and the room that is left.

    Whoever wants through several gates gets a place in all of them or in none.
    """
    left = dict(room)
    answers: list[bool] = []
    for keys in wanting:
        fits = all(left[key] > 0 for key in keys)
        if fits:
            for key in keys:
                left[key] -= 1
        answers.append(fits)
    return answers, left
