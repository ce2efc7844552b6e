"""Sealed bytes: AES-256-GCM, bound to the place they are kept at.

Every sealing draws a salt, and the salt makes a key of its own from the key it is given; so the
nonces inside may simply count, and no number of sealings under one key is too many. What is large
is sealed in pieces, the last of which says so: pieces can be neither swapped, nor left out, nor put
into another row, column or tenant without the whole refusing to open.
"""

from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from betimes.domain.errors import Locked

KEY_BYTES = 32
SALT_BYTES = 16
TAG_BYTES = 16
PIECE_BYTES = 1 << 20
COUNTER_BYTES = 11
MORE, LAST = b"\x00", b"\x01"


def seal(key: bytes, place: bytes, content: bytes, *, salt: bytes) -> bytes:
    """Content that only the key opens, and only for the same place; `salt` is fresh chance."""
    if len(salt) != SALT_BYTES:
        raise ValueError(f"expected a salt of {SALT_BYTES} bytes, got {len(salt)}")
    cipher = AESGCM(_own_key(key, salt))
    pieces = [content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES)] or [b""]
    sealed = [salt]
    for number, piece in enumerate(pieces):
        nonce = _nonce(number, last=number == len(pieces) - 1)
        sealed.append(cipher.encrypt(nonce, piece, place))
    return b"".join(sealed)


def unseal(key: bytes, place: bytes, sealed: bytes) -> bytes:
    """What was sealed; raises `Locked` for another key, another place, or a changed byte."""
    salt, body = sealed[:SALT_BYTES], sealed[SALT_BYTES:]
    cipher = AESGCM(_own_key(key, salt))
    step = PIECE_BYTES + TAG_BYTES
    starts = range(0, len(body), step)
    try:
        return (
            b"".join(
                cipher.decrypt(
                    _nonce(number, last=at + step >= len(body)), body[at : at + step], place
                )
                for number, at in enumerate(starts)
            )
            if starts
            else _nothing()
        )
    except (InvalidTag, ValueError):
        raise Locked(
            "what is sealed does not open: another key, another place, or changed"
        ) from None


def place_of(*parts: object) -> bytes:
    """Where something is kept, as bytes that no other place has."""
    return b"\x1f".join(str(part).encode() for part in parts)


def _own_key(key: bytes, salt: bytes) -> bytes:
    return blake2b(salt, key=key, digest_size=KEY_BYTES, person=b"betimes-seal").digest()


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(COUNTER_BYTES) + (LAST if last else MORE)


def _nothing() -> bytes:
    raise ValueError("nothing was sealed")
