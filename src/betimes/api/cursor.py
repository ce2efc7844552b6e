"""Places in lists, as text that only we can write: `c1.` and base64url of a value and its seal."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from betimes.api.problem import Trouble

VERSION = "c1."
SEAL_BYTES = 12
CURSOR_LENGTH_MAX = 1024


class Cursors:
    """Writes and reads cursors under a secret of the service."""

    def __init__(self, *, secret: bytes) -> None:
        self._secret = secret

    def write(self, scope: Sequence[Any], place: Sequence[Any]) -> str:
        """A cursor for a place in one list; `scope` is what the list is: tenant, name, filters."""
        body = msgspec.json.encode(list(place))
        return VERSION + urlsafe_b64encode(self._seal(scope, body) + body).decode().rstrip("=")

    def read(self, scope: Sequence[Any], text: str) -> list[Any]:
        """The place, if we wrote it for this very list."""
        if not text.startswith(VERSION) or len(text) > CURSOR_LENGTH_MAX or not text.isascii():
            raise _refusal()
        raw = text.removeprefix(VERSION)
        try:
            data = urlsafe_b64decode(raw + "=" * (-len(raw) % 4))
        except ValueError:
            raise _refusal() from None
        seal, body = data[:SEAL_BYTES], data[SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(scope, body)):
            raise _refusal()
        place: list[Any] = msgspec.json.decode(body)
        return place

    def _seal(self, scope: Sequence[Any], body: bytes) -> bytes:
        told = msgspec.json.encode([str(part) for part in scope])
        return blake2b(
            len(told).to_bytes(4) + told + body,
            key=self._secret,
            digest_size=SEAL_BYTES,
            person=b"betimes-cursor",
        ).digest()


def _refusal() -> Trouble:
    return Trouble(
        "cursor_invalid",
        "expected a cursor of this list with the same filters and order, got something else",
    )
