"""What is kept in memory because it may be needed again: bounded by bytes and by how many."""

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
S = TypeVar("S", str, "str | None")

ENTRY_BYTES = 200
"""What an entry takes besides its text and its value."""


class Kept(Generic[K, V]):
    """A cache of the values that were used last: at most so many, of at most so many bytes.

    What a value weighs is said by whoever puts it in; a rough figure is enough. One that is heavier
    than all may weigh together is not kept, and nothing goes for it.
    """

    __slots__ = ("_found", "_most", "_most_entries", "weight")

    def __init__(self, most: int, *, entries: int | None = None) -> None:
        self._most = most
        self._most_entries = entries
        self._found: dict[K, tuple[V, int]] = {}
        self.weight = 0
        """Of everything that is kept."""

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: K) -> V | None:
        """The value of a key, which counts as used."""
        found = self._found.pop(key, None)
        if found is None:
            return None
        self._found[key] = found
        return found[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Keep a value; what was not used for the longest time goes for it."""
        before = self._found.pop(key, None)
        if before is not None:
            self.weight -= before[1]
        if weight > self._most:
            return value
        self._found[key] = value, weight
        self.weight += weight
        while self.weight > self._most or self._has_too_many():
            oldest = next(iter(self._found))
            self.weight -= self._found.pop(oldest)[1]
        return value

    def _has_too_many(self) -> bool:
        return self._most_entries is not None and len(self._found) > self._most_entries


def kept_by_text(
    most: int, *, factor: int = 1, each: int = 0
) -> Callable[[Callable[[S], V]], Callable[[S], V]]:
    """Remember what a function makes of texts, for texts of at most so many bytes together.

    A value counts as `each` bytes and `factor` times its text. For any thread; two that ask for the
    same new text at once both work it out. Errors are not remembered.
    """

    def decorate(function: Callable[[S], V]) -> Callable[[S], V]:
        kept: Kept[str | None, tuple[V]] = Kept(most)
        lock = Lock()

        @wraps(function)
        def remembered(text: S) -> V:
            with lock:
                found = kept.get(text)
            if found is None:
                found = (function(text),)
                weight = ENTRY_BYTES + each + (1 + factor) * len(text or "")
                with lock:
                    kept.put(text, found, weight)
            return found[0]

        return remembered

    return decorate
