"""Reading one value: from the text of a variable or flag, or from what TOML already typed."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from betimes.config.dsn import hide_password
from betimes.config.duration import read_duration, show_duration
from betimes.config.rule import Bound, Key

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})
SHOWN_MAX = 80
NOTHING = "none"


class Kind(NamedTuple):
    """How one type is read, and how a sentence names it."""

    expected: str
    read: Callable[[object], Any]


def read_value(key: Key, raw: object) -> Any:
    """The typed value of a key; ValueError whose text says what was expected."""
    kind = KINDS[key.kind]
    try:
        value = kind.read(raw)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(_expected(key)) from error
    if not _allowed(key, value):
        raise ValueError(_expected(key))
    return value


def show_value(key: Key, value: object) -> str:
    """A value as it may be printed: short, and without passwords."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return show_duration(value)
    if isinstance(value, tuple | list):
        return ",".join(str(part) for part in value)
    return hide_password(str(value)) if key.rule.secret else str(value)


def quote(key: Key, raw: object) -> str:
    """What was got, for a sentence: never a secret, never endless."""
    if key.rule.secret:
        return "something else (not shown)"
    shown = repr(raw)
    return shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"


def _expected(key: Key) -> str:
    rule = key.rule
    if rule.choices:
        several = "a list of " if key.kind == tuple[str, ...] else "one of "
        return several + ", ".join(rule.choices)
    bounds = _bounds(rule.least, rule.most)
    return KINDS[key.kind].expected + bounds


def _bounds(least: Bound | None, most: Bound | None) -> str:
    if least is not None and most is not None:
        return f" from {_bound(least)} to {_bound(most)}"
    if least is not None:
        return f" of at least {_bound(least)}"
    return "" if most is None else f" of at most {_bound(most)}"


def _bound(bound: Bound) -> str:
    return show_duration(bound) if isinstance(bound, timedelta) else str(bound)


def _allowed(key: Key, value: Any) -> bool:
    rule = key.rule
    if isinstance(value, tuple) and not value:
        return False
    if rule.choices:
        members = value if isinstance(value, tuple) else (value,)
        return set(members) <= set(rule.choices) and len(set(members)) == len(members)
    return (rule.least is None or value >= rule.least) and (rule.most is None or value <= rule.most)


def _string(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip() or not raw.isprintable():
        raise ValueError
    return raw.strip()


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = _string(raw).lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError
    return word in TRUE_WORDS


def _integer(raw: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    text = _string(raw)
    if not text.isascii() or len(text) > len(str(2**63)):
        raise ValueError
    return int(text)


def _duration(raw: object) -> timedelta:
    if isinstance(raw, timedelta):
        return raw
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return read_duration(f"{raw:f}" if isinstance(raw, float) else str(raw))
    return read_duration(_string(raw))


def _path(raw: object) -> Path:
    return (raw if isinstance(raw, Path) else Path(_string(raw))).expanduser()


def _words(raw: object) -> tuple[str, ...]:
    parts = raw if isinstance(raw, list | tuple) else _string(raw).split(",")
    return tuple(_string(part) for part in parts)


KINDS: Mapping[Any, Kind] = MappingProxyType(
    {
        str: Kind("a text", _string),
        bool: Kind("true or false", _boolean),
        int: Kind("a whole number", _integer),
        timedelta: Kind("a duration such as 15s, 5m or PT15M", _duration),
        Path: Kind("a path", _path),
        tuple[str, ...]: Kind("a list of names", _words),
    }
)
