"""How a request to a target says who sends it: by the names of secrets."""

from typing import Annotated, Literal

import msgspec

from betimes.wire.base import Asked

SecretRef = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$", description="The name of a secret."
    ),
]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]


class BearerAuth(Asked, tag="bearer", tag_field="type"):
    """`Authorization: Bearer` and a secret."""

    secret: SecretRef


class BasicAuth(Asked, tag="basic", tag_field="type"):
    """A name, and a secret as its password."""

    username: Line
    secret: SecretRef


class HeaderAuth(Asked, tag="header", tag_field="type"):
    """A header that holds a secret."""

    header: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    secret: SecretRef


class OAuth2(Asked, tag="oauth2", tag_field="type"):
    """An access token, fetched with client credentials and kept until it nearly expires."""

    token_url: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    client_id: Line
    secret: SecretRef
    scope: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    audience: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    client_auth: Literal["header", "body"] = "header"


Auth = BearerAuth | BasicAuth | HeaderAuth | OAuth2


class Redact(Asked):
    """What is left out of evidence: headers by name, members of JSON by path."""

    headers: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=200)]],
        msgspec.Meta(max_length=100),
    ] = []
    paths: Annotated[
        list[Annotated[str, msgspec.Meta(pattern="^/.+$", max_length=500)]],
        msgspec.Meta(max_length=100),
    ] = []
