"""What the service says about itself."""

from betimes.wire.base import Instant, Members, Shown


class Health(Shown):
    """Alive."""

    status: str


class Ready(Shown):
    """Whether requests are welcome: `ready`, `degraded` (works, see the checks) or `not ready`."""

    status: str
    checks: dict[str, str]


class Version(Shown):
    """Which release this is."""

    version: str
    api_version: str
    commit: str | None
    features: list[str]


class Time(Shown):
    """What time it is here; lets workers measure their skew."""

    now: Instant
    monotonic_ns: str
    node_skew_ms: dict[str, float]


class KeyShown(Shown):
    """The key that asks."""

    id: str
    name: str
    kind: str
    scopes: list[str]
    queues: list[str] | None
    expires_at: Instant | None


class TenantShown(Shown):
    """The tenant it acts for."""

    id: str
    slug: str
    timezone: str


class WhoAmI(Shown):
    """Who asks, for whom, and how much they may."""

    tenant: TenantShown
    key: KeyShown
    limits: Members
