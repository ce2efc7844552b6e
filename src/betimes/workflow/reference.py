"""References inside payloads: what a node is given from the input and from other nodes.

    {"$output": "node", "path": "/json/pointer"}   what a node has returned, or a part of it
    {"$input": "/json/pointer"}                    what the workflow run was started with
    {"$item": "/json/pointer"}                     the item a mapped node is about
    {"$signal": "/json/pointer"}                   what came with the signal that opened its gate
    {"$literal": ...}                              exactly this, whatever it looks like

An empty pointer means the whole of it. Any other member that begins with `$` is refused, so that a
slip of the pen is no payload.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any, assert_never

from betimes.domain.errors import Invalid

DEPTH_MAX = 64
_PATH = "path"
_LITERAL = "$literal"


@unique
class Source(StrEnum):
    """Where a reference points to."""

    OUTPUT = "$output"
    INPUT = "$input"
    ITEM = "$item"
    SIGNAL = "$signal"


_SOURCES = frozenset(Source)


class Missing(Exception):
    """A reference leads nowhere; the sentence says which and where it stopped."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: the source, the node of an output, and the pointer into it."""

    source: Source
    node: str
    path: str
    place: str
    """Where it stands, as a JSON pointer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What references of one node can lead to.

    `outputs` holds what the needs of the node have returned; one that did not succeed is null there
    as a whole, whatever part of it is asked for.
    """

    input: Any = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    ended_without: frozenset[str] = frozenset()
    """Nodes that ended without an output."""
    item: Any = None
    signal: Any = None


def references(value: Any, place: str = "", depth: int = 0) -> Iterator[Reference]:
    """Every reference in a value; what is malformed is refused."""
    if depth > DEPTH_MAX:
        raise Invalid(f"expected at most {DEPTH_MAX} levels of nesting", pointer=place)
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from references(one, f"{place}/{index}", depth + 1)
    elif isinstance(value, dict):
        if _is_literal(value, place):
            return
        found = _reference(value, place)
        if found is not None:
            yield found
            return
        for name, one in value.items():
            yield from references(one, f"{place}/{escaped(name)}", depth + 1)


def resolve(value: Any, values: Values) -> Any:
    """The value with everything it refers to in its place.

    Raises:
        Missing: a pointer leads to nothing.

    """
    if isinstance(value, list):
        return [resolve(one, values) for one in value]
    if not isinstance(value, dict):
        return value
    if _is_literal(value, ""):
        return value[_LITERAL]
    found = _reference(value, "")
    if found is not None:
        return _look_up(found, values)
    return {name: resolve(one, values) for name, one in value.items()}


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _is_literal(value: Mapping[str, Any], place: str) -> bool:
    if _LITERAL not in value:
        return False
    if len(value) > 1:
        raise Invalid(f"expected {_LITERAL} alone, got {_named(value)} together", pointer=place)
    return True


def _reference(value: Mapping[str, Any], place: str) -> Reference | None:
    marked = [name for name in value if name.startswith("$")]
    if not marked:
        return None
    source = marked[0]
    if source not in _SOURCES:
        raise Invalid(
            f"expected one of {', '.join(_SOURCES_IN_ORDER)} or {_LITERAL}, got {source!r}; an "
            f'object with such a member is written as {{"{_LITERAL}": ...}}',
            pointer=place,
        )
    allowed = {source, _PATH} if source == Source.OUTPUT else {source}
    if not set(value) <= allowed:
        raise Invalid(f"expected a reference alone, got {_named(value)} together", pointer=place)
    given = value[source]
    if not isinstance(given, str):
        raise Invalid(f"expected text in {source}, got {given!r}", pointer=place)
    if source != Source.OUTPUT:
        return Reference(Source(source), "", _pointer(given, place), place)
    path = value.get(_PATH, "")
    return Reference(Source.OUTPUT, given, _pointer(path, place), place)


_SOURCES_IN_ORDER = tuple(Source)


def _named(value: Mapping[str, Any]) -> str:
    return ", ".join(sorted(value))


def _pointer(text: Any, place: str) -> str:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise Invalid(
            f"expected an empty text or a JSON pointer that begins with /, got {text!r}",
            pointer=place,
        )
    return text


def _look_up(reference: Reference, values: Values) -> Any:
    match reference.source:
        case Source.OUTPUT:
            if reference.node in values.ended_without:
                return None
            return _part(values.outputs[reference.node], reference)
        case Source.INPUT:
            return _part(values.input, reference)
        case Source.ITEM:
            return _part(values.item, reference)
        case Source.SIGNAL:
            return _part(values.signal, reference)
    assert_never(reference.source)


def _part(whole: Any, reference: Reference) -> Any:
    found = whole
    for token in reference.path.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and _is_index(name) and int(name) < len(found):
            found = found[int(name)]
        else:
            raise Missing(
                f"expected {reference.path!r} in {_called(reference)}, found nothing at {name!r}"
            )
    return found


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")


def _called(reference: Reference) -> str:
    if reference.source is Source.OUTPUT:
        return f"the output of {reference.node!r}"
    return f"the {reference.source.value[1:]}"
