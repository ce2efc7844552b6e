"""How failures are written down: bounded, storable, and grouped with those that resemble them."""

import json
import re
from hashlib import blake2b

from betimes.domain.outcome import ErrorFacts

TYPE_CHARACTERS_MAX = 200
MESSAGE_CHARACTERS_MAX = 2_000
STACK_CHARACTERS_MAX = 8_000
FINGERPRINT_BYTES = 8

# What differs between two instances of the same failure: ids, addresses, numbers, quoted values.
_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?:run|job)_[0-9A-Za-z]{26}\b|'[^']{0,200}'|\"[^\"]{0,200}\"|\d+"
)
_FRAME = re.compile(r'File "(?:[^"]*[/\\])?([^"/\\]+)", line \d+, in (.+)')


def to_json(error: ErrorFacts) -> str:
    """The error as the database keeps it. Long parts lose their middle, never their ends."""
    return json.dumps(
        {
            "type": _capped(error.type, TYPE_CHARACTERS_MAX),
            "message": _capped(error.message, MESSAGE_CHARACTERS_MAX),
            "stack": _capped(error.stack, STACK_CHARACTERS_MAX),
        }
    )


def fingerprint(error: ErrorFacts | None) -> str:
    """The same for failures of one kind: type, message without values, innermost frame.

    Line numbers are left out, so that a release does not make every old failure look new.
    """
    if error is None:
        return "none"
    frames = _FRAME.findall(error.stack)
    message = _VARIABLE.sub("?", error.message[:MESSAGE_CHARACTERS_MAX])
    parts = (error.type, message, *(frames[-1] if frames else ()))
    seed = "\x1f".join(parts).encode("utf-8", "replace")
    return blake2b(seed, digest_size=FINGERPRINT_BYTES).hexdigest()


def _capped(text: str, most: int) -> str:
    # PostgreSQL holds neither NUL nor half of a surrogate pair.
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
