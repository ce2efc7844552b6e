"""Origins that jobs call, as they are shown."""

from betimes.wire.base import Instant, Members, Shown


class Origin(Shown):
    """What is known about an origin: its breaker, and what the last worker to tell has seen."""

    origin: str
    state: str
    failures: int
    opened_at: Instant | None
    next_probe_at: Instant | None
    seen: Members
    updated_at: Instant | None


class SigningSecret(Shown):
    """What requests of the tenant are signed with; several while one replaces another."""

    secrets: list[str]
