"""Origins that jobs call, as they are shown."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Instant, Members, Shown


class Origin(Shown):
    """What is known about an origin: its breaker, and what the last worker to tell has seen."""

    origin: str
    state: str
    failures: int
    opened_at: Instant | None
    next_probe_at: Instant | None
    seen: Members
    updated_at: Instant | None


class ResetTarget(Asked):
    """Which origin: scheme, host and port, as the list shows it."""

    origin: Annotated[str, msgspec.Meta(min_length=8, max_length=300)]


class SigningSecret(Shown):
    """What requests of the tenant are signed with; several while one replaces another."""

    secrets: list[str]
