"""Places that had nothing for a worker: it leaves them to others for a while. Pure.

Workers with different handlers may share a queue. Whoever takes what it cannot do gives it back at
once; if it came back for it at once as well, it would be the first again and again, and those who
can would get nothing.
"""

from betimes.store.parcels import Source

SHY_MS, SHY_MS_MAX = 2_000, 4_000
"""Longer than others need to find by a poll what was given back, short for what is ours there."""
PLACES_MAX = 10_000


class Strangers:
    """Until when to stay away from where."""

    def __init__(self) -> None:
        self._until: dict[Source, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def until_ms(self, source: Source) -> int:
        """When a place is worth a look again; the past where it always is."""
        return self._until.get(source, (0, 0))[0]

    def found_foreign(self, source: Source, now_ms: int) -> int:
        """Nothing there was for us; until when to stay away, longer if that was so before."""
        _, before = self._until.pop(source, (0, 0))
        shy = min(2 * before, SHY_MS_MAX) if before else SHY_MS
        self._until[source] = (now_ms + shy, shy)
        if len(self._until) > PLACES_MAX:
            del self._until[next(iter(self._until))]
        return now_ms + shy

    def found_ours(self, source: Source) -> None:
        """Something there was for us."""
        self._until.pop(source, None)
