"""Standard Webhooks signatures, both ways: what is sent with a request and how it is checked."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Iterable

from betimes.domain.errors import Invalid

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64
VERSION = "v1"


def read_secret(text: str) -> bytes:
    """The bytes of a secret as it is shown: `whsec_` and base64."""
    try:
        secret = b64decode(text.removeprefix(PREFIX), validate=True)
    except (BadBase64, ValueError):
        raise Invalid("expected a secret of whsec_ and base64") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise Invalid(
            f"expected a secret of {SECRET_BYTES_MIN}-{SECRET_BYTES_MAX} bytes, got {len(secret)}"
        )
    return secret


def shown_secret(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return PREFIX + b64encode(secret).decode("ascii")


def sign(secrets: Iterable[bytes], identifier: str, timestamp: int, body: bytes) -> str:
    """The signature header: one signature for each secret, so that one can replace another."""
    signed = f"{identifier}.{timestamp}.".encode("ascii") + body
    return " ".join(f"{VERSION},{_digest(secret, signed)}" for secret in secrets)


def matches(
    secrets: Iterable[bytes], identifier: str, timestamp: str, body: bytes, header: str
) -> bool:
    """Whether any signature of the header was made with any of the secrets."""
    signed = f"{identifier}.{timestamp}.".encode() + body
    expected = [_digest(secret, signed) for secret in secrets]
    found = False
    for part in header.split():
        version, _, given = part.partition(",")
        if version == VERSION:
            # No early end: how long it takes tells nothing about which one it was.
            for one in expected:
                found |= hmac.compare_digest(one.encode(), given.encode())
    return found


def _digest(secret: bytes, signed: bytes) -> str:
    return b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode("ascii")
