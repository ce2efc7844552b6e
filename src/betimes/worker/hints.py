"""Where work may wait: told by hints, found by polls, remembered until it turns out to be done."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.leased import Source

CHANNEL = "betimes_ready"
SOURCES_MAX = 10_000
TIMES_MAX = 256


class Hint(NamedTuple):
    """Something becomes visible in a place at a time."""

    source: Source
    visible_ms: int


def read_hints(payload: str) -> Iterator[Hint]:
    """Read lines of `shard/bucket:queue:tenant:visible_at_ms,…`; later times count from the first.

    What is no hint is left out: a hint is never truth. A queue may contain colons, the rest cannot.
    """
    for line in payload.split("\n"):
        try:
            place, _, rest = line.partition(":")
            shard, _, fair = place.partition("/")
            queue, tenant, visible = rest.rsplit(":", 2)
            first, *later = map(int, visible.split(","))
            source = Source(ShardId(int(shard)), queue, TenantId(UUID(tenant)), int(fair or 0))
        except ValueError:
            continue
        yield Hint(source, first)
        for offset in later:
            yield Hint(source, first + offset)


class Board:
    """Sources with the times from which they are worth a look, in the order of turns."""

    def __init__(self, queues: frozenset[str] | None, tenant: TenantId | None = None) -> None:
        self._queues = queues
        self._tenant = tenant
        self._times: dict[Source, list[int]] = {}

    def note(self, hint: Hint) -> bool:
        """Remember a hint; whether it says anything new."""
        if self._queues is not None and hint.source.queue not in self._queues:
            return False
        if self._tenant is not None and hint.source.tenant != self._tenant:
            return False
        times = self._times.get(hint.source)
        if times is None:
            if len(self._times) >= SOURCES_MAX:
                return False
            self._times[hint.source] = [hint.visible_ms]
            return True
        place = bisect_left(times, hint.visible_ms)
        if place < len(times) and times[place] == hint.visible_ms:
            return False
        # The latest ones are forgotten when there are too many: polls find them when they are due.
        times.insert(place, hint.visible_ms)
        del times[TIMES_MAX:]
        return place == 0

    def found(self, sources: Iterable[Source]) -> None:
        """Remember what a poll has found visible."""
        for source in sources:
            self.note(Hint(source, 0))

    def due(self, now_ms: int) -> list[Source]:
        """Sources worth a look, the one whose turn was longest ago first."""
        return [source for source, times in self._times.items() if times[0] <= now_ms]

    def beside(self, source: Source) -> list[Source]:
        """It and all other shards of the same place that are known, due or put off."""
        return [one for one in self._times if one[1:] == source[1:]]

    def served(self, source: Source, *, now_ms: int, drained: bool) -> None:
        """A source had its turn and goes to the end of the line.

        If nothing was left of what was visible then, only what comes later is remembered.
        """
        times = self._times.pop(source, [])
        if drained:
            del times[: bisect_right(times, now_ms)]
        if times:
            self._times[source] = times

    def put_off(self, source: Source, *, now_ms: int, until_ms: int) -> None:
        """A source is at a limit: what is visible in it is worth a look only then."""
        self.served(source, now_ms=now_ms, drained=True)
        self.note(Hint(source, until_ms))

    def passed_over(self, sources: Iterable[Source]) -> None:
        """Sources that were to have their turn and had none: they are the next."""
        first = {source: self._times[source] for source in sources if source in self._times}
        self._times = first | self._times

    def next_ms(self) -> int | None:
        """When the next source becomes worth a look."""
        return min((times[0] for times in self._times.values()), default=None)
