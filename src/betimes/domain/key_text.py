"""The text of API keys: `btm_<kind>_<id>_<secret>_<check>`.

A prefix that secret scanners find, an id in clear, a secret of 190 bits, and a checksum that tells
a key that was not copied whole from a wrong one, without asking anybody. Only a digest of the
secret under a pepper is ever kept.
"""

import hmac
import re
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

PREFIX = "btm"
KINDS = ("sk", "wk", "rk", "ak")
ID_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 12, 32, 6
ENTROPY_BYTES = ID_LENGTH + SECRET_LENGTH
DIGEST_BYTES = 32
PERSON = b"betimes-key"

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"btm_(sk|wk|rk|ak)_([0-9A-Za-z]{12})_([0-9A-Za-z]{32})_([0-9A-Za-z]{6})")


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key taken apart."""

    kind: str
    id: str
    secret: str

    def __str__(self) -> str:
        body = f"{PREFIX}_{self.kind}_{self.id}_{self.secret}"
        return f"{body}_{_check(body)}"

    def __repr__(self) -> str:
        return f"KeyText({self.kind}, {self.id})"


def make_key(kind: str, entropy: bytes) -> KeyText:
    """A new key from `ENTROPY_BYTES` bytes nobody can guess.

    A byte modulo 62 is slightly uneven, which costs a few hundredths of a bit per symbol.
    """
    symbols = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in entropy)
    return KeyText(kind, symbols[:ID_LENGTH], symbols[ID_LENGTH : ID_LENGTH + SECRET_LENGTH])


def read_key(text: str) -> KeyText | None:
    """What was written by `str`, or None for anything else."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    key = KeyText(found[1], found[2], found[3])
    return key if hmac.compare_digest(str(key), text) else None


def digest_of(secret: str, pepper: bytes) -> bytes:
    """What is kept of a secret."""
    return blake2b(secret.encode(), key=pepper, digest_size=DIGEST_BYTES, person=PERSON).digest()


def _check(body: str) -> str:
    number = crc32(body.encode())
    symbols = []
    for _ in range(CHECK_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        symbols.append(_ALPHABET[place])
    return "".join(reversed(symbols))
