"""Sealing what must not be read where it is kept: the one seam between credentials and the store.

Whoever stores a credential seals it, whoever needs it opens it, and nobody else sees it.
`KeyedSeal` is a stream cipher and a tag, both of keyed BLAKE2b, under a key that lies beside the
database.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol
from uuid import UUID

from betimes.domain.errors import Invalid

NONCE_BYTES = 16
TAG_BYTES = 32
BLOCK_BYTES = 64
VERSION = b"\x01"


class Seal(Protocol):
    """Seals for a tenant, and opens what was sealed for the same one."""

    def seal(self, tenant: UUID, plain: bytes) -> bytes:
        """The bytes to keep."""
        ...

    def open(self, tenant: UUID, sealed: bytes) -> bytes:
        """What was sealed; raises `Invalid` when it was not sealed here, or was changed."""
        ...


@dataclass(frozen=True, slots=True)
class KeyedSeal:
    """A seal under one key; every tenant has keys of its own, made from it."""

    key: bytes = field(repr=False)
    entropy: Callable[[int], bytes]

    def seal(self, tenant: UUID, plain: bytes) -> bytes:
        """The version, a nonce, the text and its tag."""
        nonce = self.entropy(NONCE_BYTES)
        text = self._crossed(tenant, nonce, plain)
        return VERSION + nonce + text + self._tag(tenant, nonce, text)

    def open(self, tenant: UUID, sealed: bytes) -> bytes:
        """The text, if its tag is ours."""
        nonce = sealed[1 : 1 + NONCE_BYTES]
        text, tag = sealed[1 + NONCE_BYTES : -TAG_BYTES], sealed[-TAG_BYTES:]
        whole = len(sealed) >= 1 + NONCE_BYTES + TAG_BYTES and sealed[:1] == VERSION
        if not whole or not hmac.compare_digest(tag, self._tag(tenant, nonce, text)):
            raise Invalid("expected something that was sealed with this key")
        return self._crossed(tenant, nonce, text)

    def _crossed(self, tenant: UUID, nonce: bytes, text: bytes) -> bytes:
        key = blake2b(b"text" + tenant.bytes, key=self.key).digest()
        blocks = range((len(text) + BLOCK_BYTES - 1) // BLOCK_BYTES)
        stream = b"".join(
            blake2b(nonce + block.to_bytes(8, "big"), key=key).digest() for block in blocks
        )
        return bytes(one ^ other for one, other in zip(text, stream, strict=False))

    def _tag(self, tenant: UUID, nonce: bytes, text: bytes) -> bytes:
        key = blake2b(b"tag" + tenant.bytes, key=self.key).digest()
        return blake2b(nonce + text, key=key, digest_size=TAG_BYTES).digest()
