"""How a request says who sends it: secrets by reference, and what they become on the wire.

A stored target names secrets and never holds them. `read_auth` and `references_in` find the names
when a definition is read; `credentials` puts values in their places when a request is about to be
sent, and nowhere else.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from betimes.domain.errors import BadTarget, Invalid, SchedulerError
from betimes.domain.origins import OpenSecret
from betimes.target.headers import NAME as HEADER_NAME
from betimes.target.headers import VALUE as HEADER_VALUE
from betimes.target.headers import is_ours

REFERENCE = re.compile(r"\{\{secret:([A-Za-z0-9][A-Za-z0-9_.-]{0,127})\}\}")
SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
KINDS = ("bearer", "basic", "header", "oauth2")
TEXT_MAX = 2_000
POINTER = "/target/auth"

Opened = Mapping[str, OpenSecret]
"""Secrets by name, each with its values, newest first."""


class NoSecret(SchedulerError):
    """A secret that a target names is not there, or cannot stand where it is named."""

    def __init__(self, kind: str, sentence: str, *, retryable: bool = True) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence
        self.retryable = retryable


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """Who we are to a target, by the name of a secret."""

    kind: str
    secret: str
    username: str = ""
    header: str = ""
    token_url: str = ""
    client_id: str = ""
    scope: str = ""
    audience: str = ""
    in_body: bool = False
    """Whether the client's secret goes into the form instead of a header."""


def read_auth(stored: Mapping[str, Any] | None) -> Auth | None:
    """Read what is stored; what makes no sense is refused with a pointer."""
    if not stored:
        return None
    kind = str(stored.get("type", ""))
    if kind not in KINDS:
        raise Invalid(
            f"expected one of {', '.join(KINDS)}, got {kind!r}", pointer=f"{POINTER}/type"
        )
    auth = Auth(
        kind=kind,
        secret=read_name(stored.get("secret"), pointer=f"{POINTER}/secret"),
        username=_text(stored, "username"),
        header=_text(stored, "header"),
        token_url=_text(stored, "token_url"),
        client_id=_text(stored, "client_id"),
        scope=_text(stored, "scope"),
        audience=_text(stored, "audience"),
        in_body=stored.get("client_auth") == "body",
    )
    _check(auth)
    return auth


def _check(auth: Auth) -> None:
    needs = {
        "basic": ("username",),
        "header": ("header",),
        "oauth2": ("token_url", "client_id"),
    }
    for member in needs.get(auth.kind, ()):
        if not getattr(auth, member):
            raise Invalid(f"expected {member} with {auth.kind}", pointer=f"{POINTER}/{member}")
    if ":" in auth.username:
        raise Invalid("expected a username without a colon", pointer=f"{POINTER}/username")
    if auth.kind == "header" and (not HEADER_NAME.fullmatch(auth.header) or is_ours(auth.header)):
        raise BadTarget("expected a header that can be chosen", pointer=f"{POINTER}/header")


def read_name(value: object, *, pointer: str) -> str:
    """The name of a secret."""
    if not isinstance(value, str) or not SECRET_NAME.fullmatch(value):
        raise Invalid("expected the name of a secret", pointer=pointer)
    return value


def _text(stored: Mapping[str, Any], member: str) -> str:
    value = str(stored.get(member) or "")
    if len(value) > TEXT_MAX or not HEADER_VALUE.fullmatch(value):
        raise Invalid(
            f"expected one line of at most {TEXT_MAX} characters", pointer=f"{POINTER}/{member}"
        )
    return value


def references_in(texts: Iterable[str]) -> list[str]:
    """The names of secrets that texts refer to, such as `Token {{secret:api}}`."""
    return [name for text in texts for name in REFERENCE.findall(text)]


def newest(opened: Opened, name: str) -> str:
    """What a secret is, as text."""
    found = opened.get(name)
    if found is None or not found.values:
        raise NoSecret("SecretMissing", f"there is no secret {name!r}")
    try:
        return found.values[0].decode()
    except UnicodeDecodeError:
        raise NoSecret(
            "SecretUnusable", f"expected the secret {name!r} to be text", retryable=False
        ) from None


def filled(line: str, opened: Opened) -> str:
    """A header line with secrets in the places of their references."""
    return _one_line(REFERENCE.sub(lambda found: newest(opened, found[1]), line))


def credentials(auth: Auth, opened: Opened) -> str:
    """The header line that says who we are; OAuth2 has its own way to one."""
    value = newest(opened, auth.secret)
    if auth.kind == "basic":
        return _one_line(f"authorization: Basic {basic(auth.username, value)}")
    if auth.kind == "header":
        return _one_line(f"{auth.header}: {value}")
    return _one_line(f"authorization: Bearer {value}")


def basic(username: str, password: str) -> str:
    """Name and password as one word."""
    return b64encode(f"{username}:{password}".encode()).decode("ascii")


def _one_line(line: str) -> str:
    if not HEADER_VALUE.fullmatch(line):
        # Not which one, and never what it is: the line holds nothing but secrets worth hiding.
        raise NoSecret(
            "SecretUnusable", "expected a secret of one line for a header", retryable=False
        )
    return line
