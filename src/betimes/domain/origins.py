"""Origins that a secret may be sent to: scheme, host and port, or `*` for anywhere.

`https://api.example.com` is one origin, `https://*.example.com` every name below that one, and
`https://api.example.com:8443` another port. The default port of a scheme is left out, as in the
origin of a URL, so two spellings of one origin are the same text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from betimes.domain.errors import Invalid

ANY = "*"
ORIGINS_MAX = 100
LENGTH_MAX = 300
SHOWN_MAX = 5
DEFAULT_PORTS = {"http": "80", "https": "443"}
ORIGIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<wild>\*\.)?(?P<host>[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?/?"
)
WORDS_BELOW_MIN = 2
"""Labels after `*.`: `https://*.com` would be everybody."""


@dataclass(frozen=True, slots=True)
class OpenSecret:
    """The values of a secret, newest first, and the origins it may be sent to."""

    values: Sequence[bytes] = field(repr=False)
    origins: Sequence[str] = (ANY,)


def read_origins(texts: Iterable[str], *, pointer: str = "/origins") -> tuple[str, ...]:
    """Origins in the one spelling that is kept, each once.

    Raises:
        Invalid: one of them is none, or there are too many.

    """
    found = tuple(
        dict.fromkeys(_read(text, f"{pointer}/{place}") for place, text in enumerate(texts))
    )
    if len(found) > ORIGINS_MAX:
        raise Invalid(f"expected at most {ORIGINS_MAX} origins, got {len(found)}", pointer=pointer)
    return found


def _read(text: str, pointer: str) -> str:
    if text == ANY:
        return ANY
    parts = ORIGIN.fullmatch(text.lower()) if len(text) <= LENGTH_MAX else None
    narrow = parts and (not parts["wild"] or parts["host"].count(".") + 1 >= WORDS_BELOW_MIN)
    if parts is None or not narrow or ".." in parts["host"]:
        raise Invalid(
            "expected an origin such as https://api.example.com, https://*.example.com or "
            f"https://api.example.com:8443, or * for anywhere, got {text[:80]!r}",
            pointer=pointer,
        )
    scheme, port = parts["scheme"], parts["port"]
    shown = "" if port is None or port == DEFAULT_PORTS[scheme] else f":{port}"
    return f"{scheme}://{parts['wild'] or ''}{parts['host']}{shown}"


def covers(origins: Iterable[str], origin: str) -> bool:
    """Whether a secret that is bound to some origins may be sent to one."""
    return any(_is_covered(one, origin) for one in origins)


def _is_covered(one: str, origin: str) -> bool:
    if one in (ANY, origin):
        return True
    scheme, wild, below = one.partition("://*")
    if not wild or not origin.startswith(f"{scheme}://"):
        return False
    # Below starts with a dot and ends with the port, if there is one: so both are compared at once.
    name = origin.removeprefix(f"{scheme}://").removesuffix(below)
    return origin.endswith(below) and bool(name) and ":" not in name and "[" not in name


def shown_origins(origins: Sequence[str]) -> str:
    """A few of them, for a sentence."""
    more = len(origins) - SHOWN_MAX
    few = ", ".join(origins[:SHOWN_MAX]) or "no origin"
    return f"{few} and {more} more" if more > 0 else few
