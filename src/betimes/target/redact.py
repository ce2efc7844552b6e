"""What is left out of evidence: headers by name, members by path, and secrets wherever they are.

A path is a JSON pointer, with `*` for every member or element: `/card/number`, `/items/*/token`.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

HIDDEN = "[hidden]"
ALWAYS = frozenset({"authorization", "proxy-authorization", "set-cookie", "cookie"})
ANY = "*"
SECRET_LENGTH_MIN = 4
"""Shorter ones are found everywhere, and hiding them would hide everything else."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a body can do to whoever tries to read it as JSON."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Redaction:
    """What to hide, by name and by path."""

    headers: frozenset[str] = ALWAYS
    paths: tuple[Path, ...] = ()

    def and_also(self, headers: Iterable[str], paths: Iterable[str]) -> "Redaction":
        """The same and more."""
        more = frozenset(name.lower() for name in headers)
        found = tuple(path for text in paths if (path := read_path(text)))
        if more <= self.headers and not found:
            return self
        return Redaction(self.headers | more, self.paths + found)

    def header(self, name: str, value: str) -> str:
        """The value of a header as it may be kept."""
        return HIDDEN if name.lower() in self.headers else value

    def json(self, value: Any) -> Any:
        """A JSON value without what is hidden; the one that was given stays as it is."""
        for path in self.paths:
            value = _without(value, path)
        return value

    def body(self, body: bytes, *, truncated: bool) -> bytes:
        """A body as it may be kept. What should be searched and cannot be read is not kept."""
        if not self.paths or body.lstrip()[:1] not in (b"{", b"["):
            return body
        if truncated:
            return HIDDEN.encode()
        try:
            value = msgspec.json.decode(body)
        except UNREADABLE:
            return HIDDEN.encode()
        redacted = self.json(value)
        return body if redacted is value else msgspec.json.encode(redacted)


def read_path(text: str) -> Path:
    """A pointer as its steps; empty for what is none."""
    if not text.startswith("/") or len(text) == 1:
        return ()
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/"))


def _without(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return HIDDEN
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        names = list(value) if step == ANY else [step] if step in value else []
        changed = {name: _without(value[name], rest) for name in names}
        return {**value, **changed} if any(changed[n] is not value[n] for n in names) else value
    if isinstance(value, list):
        places = range(len(value)) if step == ANY else _place(step, len(value))
        changed_at = {place: _without(value[place], rest) for place in places}
        if all(changed_at[place] is value[place] for place in changed_at):
            return value
        return [changed_at.get(place, item) for place, item in enumerate(value)]
    return value


def _place(step: str, length: int) -> list[int]:
    return [int(step)] if step.isdecimal() and len(step) < 10 and int(step) < length else []  # noqa: PLR2004


class Veil:
    """Hides values that must not be kept, in every form in which a target may send them back."""

    def __init__(self, values: Iterable[str]) -> None:
        forms: set[str] = set()
        for value in values:
            if len(value) >= SECRET_LENGTH_MIN:
                forms |= _forms(value)
        self._forms = sorted((form.encode() for form in forms), key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def and_also(self, *values: str) -> "Veil":
        """The same, and more values."""
        more = Veil(values)
        more._forms = sorted([*self._forms, *more._forms], key=len, reverse=True)
        return more

    def content(self, content: bytes, *, truncated: bool = False) -> bytes:
        """Content without the values; of one that was cut off not even the beginning."""
        for form in self._forms:
            content = content.replace(form, HIDDEN.encode())
        return self._without_tail(content) if truncated else content

    def text(self, text: str) -> str:
        """The same for text."""
        return self.content(text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")

    def _without_tail(self, content: bytes) -> bytes:
        for form in self._forms:
            for length in range(min(len(form), len(content)) - 1, 0, -1):
                if content.endswith(form[:length]):
                    return content[:-length]
        return content


def _forms(value: str) -> set[str]:
    encoded = b64encode(value.encode()).decode("ascii")
    return {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote_plus(value),
        encoded,
        encoded.rstrip("="),
    }
