"""What a run has to obey besides its time: whom it shares with, and behind whom it waits. Pure."""

from collections.abc import Mapping
from hashlib import blake2b
from json import loads
from typing import Any, NamedTuple

from betimes.domain.ids import JobId
from betimes.domain.kept import kept_by_text

FAIR_BUCKETS = 1_023
"""Fairness keys fall into this many buckets; two keys in one bucket share its share."""
WAIT, SKIP = 0, 1
"""What becomes of a run while its gate is full; the numbers are stored."""
TERMS_BYTES_MAX, TERMS_BYTES = 8 << 20, 500
NAMES = ('"fairness_key"', '"concurrency"', '"rate_limit_key"')
"""Where none of these is said, there is nothing special."""


class Terms(NamedTuple):
    """Nothing special in most runs, which therefore share parcels and pay for nothing."""

    fair: int = 0
    """The bucket of its fairness key; 0 without one."""
    gate: str | None = None
    """Its concurrency key."""
    when_full: int = WAIT
    line: JobId | None = None
    """The job whose runs go one after the other."""
    rate: str | None = None
    """The key of a rate that it shares with others."""

    @property
    def is_gated(self) -> bool:
        """Whether somebody has to let it in before it may start."""
        return self.gate is not None or self.line is not None or self.rate is not None


BARE = Terms()


def fair_of(key: str | None) -> int:
    """The bucket of a fairness key, the same on every node and for ever."""
    if key is None:
        return 0
    digest = blake2b(key.encode(), digest_size=8, person=b"betimes-fair").digest()
    return 1 + int.from_bytes(digest, "big") % FAIR_BUCKETS


def terms_of(options: Mapping[str, Any]) -> Terms:
    """The terms that the options of a job or an ad-hoc run ask for."""
    key, concurrency = options.get("fairness_key"), options.get("concurrency")
    rate = options.get("rate_limit_key")
    if key is None and rate is None and not concurrency:
        return BARE
    concurrency = concurrency or {}
    return Terms(
        fair=fair_of(key),
        gate=concurrency.get("key"),
        when_full=SKIP if concurrency.get("on_limit") == "skip" else WAIT,
        rate=rate,
    )


def most_of(options: Mapping[str, Any]) -> int | None:
    """How many runs of its concurrency key the options allow at once; None: the queue decides."""
    most: int | None = (options.get("concurrency") or {}).get("limit")
    return most


@kept_by_text(TERMS_BYTES_MAX, each=TERMS_BYTES)
def terms_of_text(options: str | None) -> Terms:
    """The same from stored options; equal texts are read once."""
    if not options or not any(name in options for name in NAMES):
        return BARE
    return terms_of(loads(options))
