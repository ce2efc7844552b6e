"""A timing wheel over near-due work: put in by due time, taken out by due time.

Slots of a fixed width hold what is due within them; a heap orders the slots that are not empty.
Putting in costs O(1) for a slot that exists and O(log slots) for a new one, taking out costs O(1)
per entry. Within a slot the order is that of the due time, then of insertion. Everything of one
shard can be dropped at once when the shard is lost.

Pure: it knows no clock, only the milliseconds it is told.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
SLOT_MS = 64


class Wheel(Generic[T]):
    """Near-due entries of many shards."""

    def __init__(self, *, slot_ms: int = SLOT_MS) -> None:
        self._slot_ms = slot_ms
        self._slots: dict[int, list[tuple[int, int, T]]] = {}
        self._order: list[int] = []
        self._counts: Counter[int] = Counter()

    def __len__(self) -> int:
        return self._counts.total()

    def count(self, shard: int) -> int:
        """How many entries of one shard are waiting."""
        return self._counts[shard]

    def put(self, shard: int, due_ms: int, entry: T) -> None:
        """Add an entry that is due at a millisecond."""
        slot = due_ms // self._slot_ms
        entries = self._slots.get(slot)
        if entries is None:
            entries = self._slots[slot] = []
            heapq.heappush(self._order, slot)
        entries.append((due_ms, shard, entry))
        self._counts[shard] += 1

    def take(self, until_ms: int) -> Iterator[tuple[int, T]]:
        """Everything due at or before a millisecond, in the order of dueness, with its shard."""
        while self._order and self._order[0] <= until_ms // self._slot_ms:
            slot = self._order[0]
            entries = sorted(self._slots[slot], key=_due)
            ripe = [entry for entry in entries if entry[0] <= until_ms]
            self._keep(slot, entries[len(ripe) :])
            for _, shard, entry in ripe:
                self._counts[shard] -= 1
                yield shard, entry
            if len(ripe) < len(entries):
                return

    def drop(self, shard: int) -> int:
        """Forget everything of one shard; returns how much that was."""
        dropped = self._counts.pop(shard, 0)
        if dropped:
            for slot in list(self._slots):
                self._slots[slot] = [entry for entry in self._slots[slot] if entry[1] != shard]
        return dropped

    def next_due(self) -> int | None:
        """The millisecond of the most urgent entry."""
        while self._order and not self._slots[self._order[0]]:
            del self._slots[heapq.heappop(self._order)]
        if not self._order:
            return None
        return min(map(_due, self._slots[self._order[0]]))

    def _keep(self, slot: int, rest: list[tuple[int, int, T]]) -> None:
        if rest:
            self._slots[slot] = rest
        else:
            del self._slots[heapq.heappop(self._order)]


def _due(entry: tuple[int, int, T]) -> int:
    return entry[0]
