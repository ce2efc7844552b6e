"""How long to believe that we own a shard."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class LeaseTerm:
    """One uninterrupted ownership of one shard.

    The database decides who owns; this value only decides when to stop believing it.
    `trusted_until` counts from the moment we ASKED, on the monotonic clock, so a slow
    answer can shorten our trust but never stretch it.
    """

    shard: int
    epoch: int
    trusted_until: float

    @classmethod
    def won(cls, shard: int, epoch: int, *, asked_at: float, ttl: float, margin: float) -> Self:
        """The term that follows from a grant we asked for at `asked_at` (monotonic seconds)."""
        return cls(shard, epoch, trusted_until=asked_at + max(0.0, ttl - margin))

    def renewed(self, *, asked_at: float, ttl: float, margin: float) -> "LeaseTerm":
        """The same ownership, trusted longer; a late answer to an early question adds nothing."""
        until = asked_at + max(0.0, ttl - margin)
        return LeaseTerm(self.shard, self.epoch, trusted_until=max(self.trusted_until, until))

    def is_trusted(self, now: float) -> bool:
        """Whether writing under this term is still worth trying."""
        return now < self.trusted_until
