"""The search line `q`, shared by console and command line: `state:dead queue:mail "timeout"`.

A word with a colon is a filter, the same as the parameter of that name; filters of one name mean
OR, different ones AND. What has no colon, or stands in quotes, is text to look for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from betimes.api.problem import Trouble
from betimes.api.shaping import read_span
from betimes.wire.base import Asked, shown_instant

LENGTH_MAX = 500
WORDS_MAX = 50
TAG = "tag."
_WORD = re.compile(
    r"""
    \s*(?:
        "(?P<quoted>[^"]*)"
      | (?P<name>[A-Za-z_][\w.-]*):(?:"(?P<said>[^"]*)"|(?P<value>[^\s"]+))
      | (?P<bare>[^\s":]+)
    )(?=\s|$)
    """,
    re.VERBOSE,
)


@dataclass(slots=True)
class Search:
    """A search line, taken apart."""

    filters: dict[str, list[str]] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def read_search(line: str) -> Search:
    """Take a line apart; what is neither filter nor text is refused with its place."""
    if len(line) > LENGTH_MAX:
        raise _refused(f"expected at most {LENGTH_MAX} characters, got {len(line)}")
    found, place, count = Search(), 0, 0
    line = line.strip()
    while place < len(line):
        word = _WORD.match(line, place)
        count += 1
        if word is None or count > WORDS_MAX:
            raise _refused(
                f"expected name:value, a word or a quoted text at character {place}, "
                f"got {line[place : place + 20]!r}"
            )
        _put(found, word)
        place = word.end()
    return found


def _put(found: Search, word: "re.Match[str]") -> None:
    if word["name"] is None:
        text = word["bare"] if word["quoted"] is None else word["quoted"]
        if text:
            found.words.append(text)
        return
    value = word["value"] if word["said"] is None else word["said"]
    if word["name"].startswith(TAG):
        found.tags.append(f"{word['name'].removeprefix(TAG)}:{value}")
    else:
        found.filters.setdefault(word["name"], []).extend(value.split(","))


def search_into(
    query: Asked, line: str | None, names: Mapping[str, str], now: datetime
) -> str | None:
    """Add the filters of a line to a query as if they were its parameters; the text that is left.

    `names` maps what a line may say to the parameter that means it; `since` and `until` take a
    duration before now.
    """
    if line is None:
        return None
    found = read_search(line)
    told = msgspec.to_builtins(query)
    for name, values in found.filters.items():
        parameter = names.get(name)
        if parameter is None:
            known = ", ".join(sorted([*names, f"{TAG}<name>"]))
            raise _refused(f"there is no filter {name[:50]!r}; there are {known}")
        ago = name in ("since", "until")
        _add(told, parameter, [_instant(one, now) if ago else one for one in values], name)
    if found.tags:
        told["tag"] = [*told["tag"], *found.tags]
    try:
        changed = msgspec.convert(told, type=type(query))
    except msgspec.ValidationError as error:
        raise _refused(str(error)) from None
    for one in msgspec.structs.fields(type(query)):
        setattr(query, one.name, getattr(changed, one.name))
    return " ".join(found.words) or None


def _instant(text: str, now: datetime) -> str:
    return shown_instant(now - read_span(text, pointer="/q"))


def _add(told: dict[str, object], parameter: str, values: list[str], name: str) -> None:
    present = told[parameter]
    if isinstance(present, list):
        told[parameter] = [*present, *values]
    elif present is None and len(values) == 1:
        told[parameter] = values[0]
    else:
        raise _refused(f"expected the filter {name} once")


def _refused(sentence: str) -> Trouble:
    return Trouble("invalid_parameter", f"parameter q: {sentence}")
