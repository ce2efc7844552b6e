"""What is kept in memory because it may be needed again: bounded by bytes, not by how many."""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key, those that were used last, as many as weigh no more than so many bytes.

    What a value weighs is said by whoever puts it in; a rough figure is enough.
    """

    __slots__ = ("_found", "_most", "weight")

    def __init__(self, most: int) -> None:
        self._most = most
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
        self._found[key] = value, weight
        self.weight += weight
        while self.weight > self._most:
            oldest = next(iter(self._found))
            self.weight -= self._found.pop(oldest)[1]
        return value
