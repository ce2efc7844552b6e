"""Token buckets as values: so much per second, so much at once."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` per period, and at most `burst` at once."""

    limit: float
    period: timedelta
    burst: float

    def __post_init__(self) -> None:
        if self.limit <= 0 or self.period <= timedelta(0) or self.burst < 1:
            raise ValueError(f"a rate has a positive limit and period and a burst, got {self}")

    @property
    def per_second(self) -> float:
        """Tokens that come in each second."""
        return self.limit / self.period.total_seconds()


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many tokens there were at an instant."""

    tokens: float
    at: datetime

    @classmethod
    def full(cls, rate: Rate, at: datetime) -> "Bucket":
        """A bucket nobody has taken from yet."""
        return cls(rate.burst, at)

    def refilled(self, rate: Rate, now: datetime) -> "Bucket":
        """The bucket now; a clock that went backwards fills nothing."""
        seconds = max(0.0, (now - self.at).total_seconds())
        return Bucket(min(rate.burst, self.tokens + seconds * rate.per_second), max(now, self.at))

    def take(self, rate: Rate, wanted: int, now: datetime) -> tuple[int, "Bucket"]:
        """As many whole tokens of the wanted as there are, and what is left."""
        current = self.refilled(rate, now)
        taken = max(0, min(wanted, int(current.tokens)))
        return taken, Bucket(current.tokens - taken, current.at)

    def give_back(self, rate: Rate, unused: int) -> "Bucket":
        """Return tokens for work that did not start."""
        return Bucket(min(rate.burst, self.tokens + unused), self.at)

    def next_token_at(self, rate: Rate, now: datetime) -> datetime:
        """When at least one token will be there."""
        current = self.refilled(rate, now)
        missing = max(0.0, 1.0 - current.tokens)
        return current.at + timedelta(seconds=missing / rate.per_second)
