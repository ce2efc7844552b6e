"""What is wrong with the settings, all of it at once."""

import difflib
from collections.abc import Iterable

from betimes.domain.errors import BadSetting


class BadSettings(BadSetting):
    """One or more settings are wrong; `problems` holds a sentence for each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def did_you_mean(unknown: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name nobody knows: a guess, or nothing."""
    candidates = list(known)
    same_leaf = [
        name for name in candidates if name.rpartition(".")[2] == unknown.rpartition(".")[2]
    ]
    close = difflib.get_close_matches(unknown, candidates, n=1, cutoff=0.7) or same_leaf
    return f"; did you mean {close[0]}?" if close else ""
