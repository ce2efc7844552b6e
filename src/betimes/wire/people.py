"""Members, sessions and devices as they are asked for and shown."""

from typing import Annotated

import msgspec

from betimes.wire.base import Asked, Instant, Shown, Text
from betimes.wire.keys import Role, Slug

Email = Annotated[str, msgspec.Meta(min_length=3, max_length=254)]
Secret = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]


class NewMember(Asked):
    """Somebody to be invited."""

    email: Email
    name: Text
    role: Role = "viewer"


class ChangeMember(Asked):
    """What of a member may change; `renew_code` makes a fresh one-time code."""

    name: Text | None = None
    role: Role | None = None
    renew_code: bool = False


class Member(Shown):
    """Somebody who belongs to the tenant."""

    id: str
    email: str
    name: str
    role: str
    revision: int
    etag: str
    has_password: bool
    invited_until: Instant | None
    signed_in_at: Instant | None
    created_at: Instant
    created_by: str | None
    updated_at: Instant
    code: str | None = None


class NewSession(Asked):
    """Signing in: with a key, with a one-time code, or with tenant, address and password."""

    key: Secret | None = None
    code: Secret | None = None
    tenant: Slug | None = None
    email: Email | None = None
    password: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class Session(Shown):
    """A session; `csrf_token` goes into the header Betimes-Csrf of whatever changes something."""

    csrf_token: str
    expires_at: Instant
    member_id: str | None = None
    key_id: str | None = None


class NewDevice(Asked):
    """A device that wants to act for somebody."""

    name: Text = "command line"


class DeviceAsking(Shown):
    """What the device keeps, what it shows, and how often it may ask."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    interval: int
    expires_in: int


class DeviceToken(Asked):
    """What the device was given."""

    device_code: Secret


class Token(Shown):
    """The key of the device, shown this once."""

    token: str
    key_id: str
    token_type: str = "Bearer"  # noqa: S105 -- the name of a scheme
    expires_at: Instant | None = None


class AnswerDevice(Asked):
    """Whether the device with this code may act for the caller."""

    user_code: Annotated[str, msgspec.Meta(min_length=8, max_length=20)]
    approve: bool = True


class DeviceAnswered(Shown):
    """What was answered, and to whom."""

    name: str
    approved: bool
