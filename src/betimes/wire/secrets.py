"""Secrets as they are written and as their names are shown; what they are is never shown."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Instant, Shown

Origins = Annotated[
    list[Annotated[str, msgspec.Meta(min_length=1, max_length=300)]],
    msgspec.Meta(
        max_length=100,
        description="Where the secret may be sent: origins such as `https://api.example.com`, "
        "`https://*.example.com` for every name below, or `*` for anywhere.",
    ),
]


class PutSecret(Asked):
    """A value, as text or in base64. The newest `keep` versions stay; a new one needs origins."""

    value: Annotated[str, msgspec.Meta(min_length=1, max_length=65536)] | None = None
    value_base64: Annotated[str, msgspec.Meta(min_length=1, max_length=90000)] | None = None
    keep: Annotated[int, msgspec.Meta(ge=1, le=10)] = 2
    origins: Origins | None = None


class BindSecret(Asked):
    """Where a secret may be sent from now on; nowhere, if there is no origin."""

    origins: Origins


class Secret(Shown):
    """A secret by name."""

    name: str
    version: int
    versions: int
    created_at: Instant
    updated_at: Instant
    created_by: str | None
    origins: list[str]


class SecretVersion(Shown):
    """When a version was written, and by whom."""

    version: int
    created_at: Instant
    created_by: str | None


class SecretShown(Secret):
    """A secret with its versions, newest first."""

    history: list[SecretVersion]
