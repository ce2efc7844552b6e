"""Secrets as they are written and as their names are shown; what they are is never shown."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Instant, Shown


class PutSecret(Asked):
    """A value, as text or in base64. The newest `keep` versions stay."""

    value: Annotated[str, msgspec.Meta(min_length=1, max_length=65536)] | None = None
    value_base64: Annotated[str, msgspec.Meta(min_length=1, max_length=90000)] | None = None
    keep: Annotated[int, msgspec.Meta(ge=1, le=10)] = 2


class Secret(Shown):
    """A secret by name."""

    name: str
    version: int
    versions: int
    created_at: Instant
    updated_at: Instant
    created_by: str | None


class SecretVersion(Shown):
    """When a version was written, and by whom."""

    version: int
    created_at: Instant
    created_by: str | None


class SecretShown(Secret):
    """A secret with its versions, newest first."""

    history: list[SecretVersion]
