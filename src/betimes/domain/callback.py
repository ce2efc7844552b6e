"""Callbacks: whom a job or run tells how it ended, as its options keep it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any
from uuid import UUID

from betimes.domain.ids import TAIL_BYTES, compose, shard_of_key

_WORDS = {
    "success": frozenset({"run.succeeded"}),
    "failure": frozenset({"run.dead", "run.expired", "run.missed"}),
    "cancellation": frozenset({"run.cancelled", "run.skipped"}),
}
EVENTS_OF: Mapping[str, frozenset[str]] = MappingProxyType(
    _WORDS | {event: frozenset({event}) for events in _WORDS.values() for event in sorted(events)}
)
"""What somebody may want to be told of, in a word or by its event, and the events that tell it."""
ENDS = tuple(_WORDS)
CALLBACKS_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """One to be told: an endpoint by its id, or a URL."""

    on: tuple[str, ...]
    url: str | None = None
    endpoint: str | None = None

    def is_for(self, event: str) -> bool:
        """Whether an event is to be told to it."""
        return any(event in EVENTS_OF[end] for end in self.on)


def read_callbacks(stored: Sequence[Mapping[str, Any]]) -> list[Callback]:
    """What is stored with a job or a run."""
    return [
        Callback(
            on=tuple(end for end in one.get("on", ENDS) if end in EVENTS_OF),
            url=one.get("url"),
            endpoint=one.get("endpoint"),
        )
        for one in stored
    ]


def wants_success(options: Mapping[str, Any]) -> bool:
    """Whether a success must be told, because of somebody who is called back."""
    return any(one.is_for("run.succeeded") for one in read_callbacks(options.get("notify") or ()))


def callback_endpoint_id(tenant: UUID, url: str, *, shards: int) -> UUID:
    """The endpoint that stands for a URL of a tenant."""
    digest = blake2b(tenant.bytes + url.encode(), digest_size=TAIL_BYTES).digest()
    shard = shard_of_key(shards, str(tenant), url)
    return compose(0, shard, int.from_bytes(digest, "big"))
