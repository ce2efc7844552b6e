"""API keys and tenants as they are asked for and shown."""

from typing import Annotated, Any, Literal

import msgspec

from betimes.wire.base import Asked, Duration, Instant, Members, Shown, Text
from betimes.wire.jobs import Queue, Reason

Network = Annotated[str, msgspec.Meta(min_length=2, max_length=50)]
Queues = Annotated[list[Queue], msgspec.Meta(max_length=100)]
Networks = Annotated[list[Network], msgspec.Meta(max_length=100)]
Kind = Literal["sk", "wk", "rk", "ak"]
Role = Literal["viewer", "operator", "editor", "admin"]
Slug = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,62}$")]


class NewKey(Asked):
    """A key to be made; a role stands for its scopes."""

    name: Text
    kind: Kind = "sk"
    scopes: Annotated[list[str], msgspec.Meta(max_length=100)] = []
    role: Role | None = None
    queues: Queues | None = None
    ip_allow: Networks | None = None
    expires_at: Instant | None = None


class ChangeKey(Asked):
    """What of a key may change."""

    name: Text | None = None
    queues: Queues | None = None
    ip_allow: Networks | None = None
    expires_at: Instant | None = None


class RotateKey(Asked):
    """How long both keys work."""

    overlap: Duration = "PT24H"


class Key(Shown):
    """A key without its secret."""

    id: str
    name: str
    kind: str
    scopes: list[str]
    queues: list[str] | None
    ip_allow: list[str] | None
    created_at: Instant
    created_by: str | None
    expires_at: Instant | None
    revoked_at: Instant | None
    last_used_at: Instant | None
    replaces: str | None


class MadeKey(Key):
    """A key with its secret, shown this once."""

    secret: str


class PageOnly(Asked):
    """Where a page begins, and how long it is."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = 50
    cursor: str | None = None


class NewTenant(Asked):
    """A tenant to be made."""

    slug: Slug
    name: Text
    timezone: Text = "UTC"
    plan: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] = "standard"
    weight: Annotated[float, msgspec.Meta(ge=0.001, le=1000)] = 1.0
    quotas: dict[str, int] = {}
    settings: Members = {}


class ChangeTenant(Asked):
    """What of a tenant may change; what is left out stays, a null among members removes."""

    name: Text | None = None
    timezone: Text | None = None
    plan: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    weight: Annotated[float, msgspec.Meta(ge=0.001, le=1000)] | None = None
    quotas: dict[str, int | None] | None = None
    settings: Members | None = None


class Suspend(Asked):
    """How far."""

    reason: Reason = ""
    mode: Literal["reject_new", "stop_all"] = "reject_new"


class DeleteTenant(Asked):
    """How long it can be called off, by resuming the tenant or cancelling the operation."""

    grace: Duration = "P7D"


class Tenant(Shown):
    """A tenant."""

    id: str
    slug: str
    name: str
    timezone: str
    plan: str
    state: str
    state_reason: str | None
    weight: float
    quotas: dict[str, Any]
    settings: Members
    revision: int
    created_at: Instant
    updated_at: Instant


class Quotas(Asked):
    """Limits by name."""

    quotas: dict[str, int]


class QuotaShown(Shown):
    """One limit and how much of it is used."""

    name: str
    limit: int | None
    used: int | None
    soft_limit: int | None = None
    resets_at: Instant | None = None


class QuotaList(Shown):
    """Every limit."""

    items: list[QuotaShown]
