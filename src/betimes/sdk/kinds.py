"""What a value that is not there yet will be, as far as annotations tell."""

from collections.abc import Iterator, Mapping
from typing import Any

from betimes.sdk.reference import steps_of
from betimes.sdk.shapes import schema_of

WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "null": "nothing",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}
NAMES = {
    bool: "boolean", int: "number", float: "number", str: "string", type(None): "null",
    list: "array", dict: "object",
}  # fmt: skip


class NoPart(LookupError):
    """An output that will never have the part that was named; the sentence says what it has."""


def kinds_at(kind: Any, path: str = "") -> frozenset[str] | None:
    """The JSON types that a value of a type has at a place; None when they are not known.

    Raises:
        NoPart: there is nothing at that place, whatever the value.

    """
    schema = schema_of(kind)
    if schema is None:
        return None
    found: list[Mapping[str, Any]] = list(_variants(schema, schema))
    for step in steps_of(path):
        below = [part for one in found for part in _parts(one, step, schema)]
        if not below:
            raise NoPart(_what_there_is(found, step))
        found = below
    told: set[str] = set()
    for one in found:
        names = _types(one)
        if names is None:
            return None
        told |= names
    return frozenset(told)


def said(kinds: frozenset[str]) -> str:
    """Types in words."""
    return " or ".join(WORDS[one] for one in sorted(kinds))


def _variants(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        yield from _variants(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    elif any(name in schema for name in ("anyOf", "oneOf")):
        for one in schema.get("anyOf") or schema["oneOf"]:
            yield from _variants(one, root)
    else:
        yield schema


def _parts(
    schema: Mapping[str, Any], step: str, root: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    kinds = _types(schema)
    if kinds is None:
        yield {}
    elif "object" in kinds:
        inside = schema.get("properties", {}).get(step)
        if inside is None and ("properties" not in schema or schema.get("additionalProperties")):
            inside = schema.get("additionalProperties", {})
        if inside is not None and inside is not False:
            yield from _variants(inside if isinstance(inside, Mapping) else {}, root)
    elif "array" in kinds and step.isdecimal():
        first = schema.get("prefixItems", [])
        place = int(step)
        if place < len(first):
            yield from _variants(first[place], root)
        elif schema.get("items", {}) is not False:
            inside = schema.get("items", {})
            yield from _variants(inside if isinstance(inside, Mapping) else {}, root)


def _types(schema: Mapping[str, Any]) -> frozenset[str] | None:
    told = schema.get("type")
    if told is not None:
        names = told if isinstance(told, list) else [told]
        return frozenset("number" if name == "integer" else name for name in names)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        return frozenset(NAMES[type(value)] for value in values)
    return None


def _what_there_is(found: list[Mapping[str, Any]], step: str) -> str:
    names = sorted({name for one in found for name in one.get("properties", {})})
    if names:
        return f"expected one of its members {', '.join(names)}, got {step!r}"
    kinds = frozenset(kind for one in found for kind in _types(one) or ())
    return f"expected something that has {step!r}, it is {said(kinds)}"
