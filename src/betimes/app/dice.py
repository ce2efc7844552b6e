"""Chance: the dice for jitter, and the entropy of ids and secrets."""

import os
import random

SECRET_BYTES = 32


class Dice:
    """Thrown in `app`, handed to whoever needs a roll."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- spreads waits; secrets come from `entropy`

    def roll(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def entropy(self, count: int) -> bytes:
        """Bytes nobody can guess, for the tails of ids."""
        return os.urandom(count)

    def secret(self) -> str:
        """A text nobody can guess."""
        return self.entropy(SECRET_BYTES).hex()
