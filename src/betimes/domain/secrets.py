"""Secrets of people: passwords, one-time codes, cookies. Only digests of them are ever kept."""

import hmac
from base64 import urlsafe_b64encode
from hashlib import blake2b, scrypt

PASSWORD_LENGTH_MIN, PASSWORD_LENGTH_MAX = 12, 200
SALT_BYTES = 16
TOKEN_BYTES = 32
DIGEST_BYTES = 32
USER_CODE_BYTES = 8
# Letters that make no words and are not mistaken for one another.
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_HALF = 4


def password_digest(password: str, salt: bytes) -> bytes:
    """Slow on purpose: some 16 MiB and tens of milliseconds for every guess."""
    return scrypt(password.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=DIGEST_BYTES)


def same(one: bytes, other: bytes) -> bool:
    """Compare without telling by time where they differ."""
    return hmac.compare_digest(one, other)


def token_text(entropy: bytes) -> str:
    """A secret that is shown once: 32 bytes nobody can guess, as text."""
    return urlsafe_b64encode(entropy).decode().rstrip("=")


def token_digest(token: str, pepper: bytes, *, purpose: str) -> bytes:
    """What is kept of a token; the same token is worth nothing for another purpose."""
    return blake2b(
        f"{purpose}:{token}".encode(),
        key=pepper,
        digest_size=DIGEST_BYTES,
        person=b"betimes-person",
    ).digest()


def user_code(entropy: bytes) -> str:
    """Eight letters that a person types: `BCDF-GHJK`."""
    letters = "".join(_LETTERS[byte % len(_LETTERS)] for byte in entropy[:USER_CODE_BYTES])
    return f"{letters[:_HALF]}-{letters[_HALF:]}"


def read_user_code(text: str) -> str:
    """A code as somebody typed it: case, spaces and dashes do not matter."""
    letters = "".join(letter for letter in text.upper() if letter.isalnum())
    return f"{letters[:_HALF]}-{letters[_HALF:]}"
