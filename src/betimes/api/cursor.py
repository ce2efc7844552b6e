"""Places in lists, as text that only we can write: `c1.` and base64url of a value and its seal."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from betimes.api.problem import Trouble

VERSION = "c1."
BEGINNING = "c1.beginning"
"""The cursor of the first page: the same for every list, because it holds no place."""
SEAL_BYTES = 12
CURSOR_LENGTH_MAX = 6144
PAGES_BACK_MAX = 40
"""So many pages a cursor of a list that is read in one direction remembers."""


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


class Leaves:
    """The cursors of one request for a list that is read in one direction only.

    A cursor remembers where the pages before it began, so that one can turn back: a page is read
    again from its own place, whatever has come or gone meanwhile. After too many pages the way
    back leads to the beginning.
    """

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors
        self._scope: Sequence[Any] = ()
        self._place: list[Any] | None = None
        self._before: list[list[Any]] = []

    def read(self, scope: Sequence[Any], text: str) -> list[Any]:
        """The place of a cursor that this or an earlier page wrote."""
        self._place, self._before = self._cursors.read(scope, text)
        self._scope = scope
        return self._place or []

    def write(self, scope: Sequence[Any], place: Sequence[Any]) -> str:
        """The cursor of the page after this one."""
        here = [] if self._place is None else [self._place]
        before = [*self._before, *here][-PAGES_BACK_MAX:]
        return self._cursors.write(scope, [list(place), before])

    @property
    def back(self) -> str | None:
        """The cursor of the page before this one; None on the first."""
        if self._place is None:
            return None
        if not self._before:
            return BEGINNING
        *earlier, last = self._before
        return self._cursors.write(self._scope, [last, earlier])


def _refusal() -> Trouble:
    return Trouble(
        "cursor_invalid",
        "expected a cursor of this list with the same filters and order, got something else",
    )
