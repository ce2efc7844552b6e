"""When a worker that speaks HTTP is handed a parcel whose workers died repeatedly. Pure.

A suspect is leased alone: only by a worker that holds nothing else, and nothing else is leased
while it is held. So that a busy worker does not leave suspects for ever, it now and then gets
nothing for a moment, to become empty. Where that is in vain, because what it executes takes long, a
suspect is leased beside the others. Workers on the database do the same (`worker.lookout`).
"""

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

from betimes.domain.ids import WorkerId

LOOK_EVERY_SECONDS = 2.0
EMPTYING_SECONDS, EMPTYING_SECONDS_MAX = 2.0, 8.0
"""How long a worker gets nothing to become empty; longer each time that it was not enough."""
EMPTYING_TRIES = 3
"""So often it is tried in vain before a suspect is leased beside the others."""
WORKERS_MAX = 10_000
"""Most workers of which is remembered how far they are."""


class Offer(Enum):
    """What a worker may lease now."""

    ORDINARY = "ordinary"
    """Whatever waits, but no suspects."""
    LOOK = "look"
    """A suspect if one waits, else whatever does; it is time to look for them."""
    EITHER = "either"
    """Whatever waits, and if nothing does a suspect."""
    NOTHING = "nothing"


@dataclass(slots=True)
class _Progress:
    """How far one worker is with becoming empty."""

    look_at: float = float("-inf")
    quiet_until: float = float("-inf")
    seconds: float = EMPTYING_SECONDS
    tries: int = 0


class Suspects:
    """What each worker may lease, as one node sees it; the time is monotonic."""

    def __init__(self) -> None:
        self._workers: OrderedDict[WorkerId, _Progress] = OrderedDict()

    def offer(self, worker: WorkerId, *, held: int, suspects: int, now: float) -> Offer:
        """What a worker may lease that holds so many parcels, so many suspects among them."""
        if suspects and held == suspects:
            return Offer.NOTHING
        one = self._of(worker)
        if now < one.quiet_until:
            return Offer.NOTHING if held else Offer.LOOK
        if now >= one.look_at:
            return Offer.LOOK
        return Offer.ORDINARY if held else Offer.EITHER

    def looked(self, worker: WorkerId, *, found: bool, held: int, now: float) -> Offer:
        """What it may lease after a look for suspects: NOTHING means to become empty first."""
        one = self._of(worker)
        one.look_at = now + LOOK_EVERY_SECONDS
        if not found:
            self._workers.pop(worker, None)
            self._of(worker).look_at = one.look_at
            return Offer.ORDINARY
        if not held:
            one.tries, one.seconds, one.look_at = 0, EMPTYING_SECONDS, now
            return Offer.LOOK
        one.tries += 1
        if one.tries > EMPTYING_TRIES:
            return Offer.LOOK
        # Ordinary work has its turn between two tries, however long they are.
        one.quiet_until = now + one.seconds
        one.look_at += one.seconds
        one.seconds = min(2 * one.seconds, EMPTYING_SECONDS_MAX)
        return Offer.NOTHING

    def _of(self, worker: WorkerId) -> _Progress:
        found = self._workers.get(worker)
        if found is None:
            found = self._workers[worker] = _Progress()
            if len(self._workers) > WORKERS_MAX:
                self._workers.popitem(last=False)
        return found
