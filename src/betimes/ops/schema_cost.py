"""What checking a payload may cost at most, before anybody pays for it.

A schema of a few lines can apply itself twice to the same value, and that twice, and so on: its
checks double with every level, and nothing ends them before they are done. How often a schema may
be applied along one path of a value of some depth is counted here by its shape alone.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from betimes.domain.kept import kept_by_text

APPLIED_MAX = 20_000_000
"""So many applications are done within a second or two; what may need more is not checked here."""
DEPTH_MAX = 64
COSTS_BYTES_MAX, COSTS_BYTES = 8 << 20, 1_000
SCHEMAS_MAX = 5_000
ALL = ("allOf", "anyOf", "oneOf")
ONE = ("not", "if", "then", "else")
NAMED = ("dependentSchemas", "dependencies")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
REST = ("additionalProperties", "unevaluatedProperties", "propertyNames")
ELEMENTS = ("additionalItems", "contains", "unevaluatedItems")
_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)

Schema = Mapping[str, Any]


def affordable(schema: str, payload: bytes | None) -> bool:
    """Whether a check cannot take long, whatever the payload holds."""
    size, depth = (1, 0) if payload is None else _measured(payload)
    costs = _costs(schema)
    return costs[min(depth, DEPTH_MAX)] * size <= APPLIED_MAX


@kept_by_text(COSTS_BYTES_MAX, factor=0, each=COSTS_BYTES)
def _costs(schema: str) -> tuple[int, ...]:
    """How often something is applied along one path of a value, by the depth of the value."""
    try:
        return _Reckoning(msgspec.json.decode(schema)).costs()
    except RecursionError:  # references to references to references
        return (APPLIED_MAX + 1,) * (DEPTH_MAX + 1)


def _measured(payload: bytes) -> tuple[int, int]:
    """How many values there are at most, and how deep they lie."""
    size, depth, deepest = 1, 0, 0
    for part in _PARTS.finditer(payload):
        match part[0]:
            case b"[" | b"{":
                size, depth = size + 1, depth + 1
                deepest = max(deepest, depth)
            case b"]" | b"}":
                depth -= 1
            case b",":
                size += 1
            case _:
                pass  # what stands in strings is no structure
    return size, deepest


class _Reckoning:
    """The subschemas of one schema, and what applying each of them leads to."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._anchors: dict[str, Any] = {}
        self._schemas: list[Schema] = []
        self._below: dict[int, int] = {}
        """What each costs on a value one level lower."""
        self._here: dict[int, int] = {}
        self._collect()

    def costs(self) -> tuple[int, ...]:
        """For values of every depth."""
        found: list[int] = []
        if len(self._schemas) > SCHEMAS_MAX:
            found.append(APPLIED_MAX + 1)
        while len(found) <= DEPTH_MAX:
            if found and (found[-1] > APPLIED_MAX or self._here == self._below):
                found.append(found[-1])  # it stays so, however deep
                continue
            self._below, self._here = self._here, {}
            found.append(self._cost(self._root, set()))
            for one in self._schemas:
                self._cost(one, set())
        return tuple(found)

    def _collect(self) -> None:
        waiting = [self._root]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Mapping):
                self._schemas.append(one)
                for name in ("$anchor", "$dynamicAnchor"):
                    if isinstance(one.get(name), str):
                        self._anchors[one[name]] = one
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one

    def _cost(self, schema: Any, path: set[int]) -> int:
        """Of applying a schema to a value of this depth; what leads back to itself ends there."""
        place = id(schema)
        if not isinstance(schema, Mapping) or place in path:
            return 1
        known = self._here.get(place)
        if known is None:
            path.add(place)
            known = 1 + max(map(self._lower, _children(schema)), default=0)
            known += sum(self._cost(one, path) for one in self._beside(schema))
            path.discard(place)
            self._here[place] = known = min(known, APPLIED_MAX + 1)
        return known

    def _lower(self, applied: list[Any]) -> int:
        return sum(self._below.get(id(one), 0) for one in applied)

    def _beside(self, schema: Schema) -> Iterator[Any]:
        """What is applied to the same value."""
        for name in ALL:
            yield from _list(schema.get(name))
        for name in ONE:
            if name in schema:
                yield schema[name]
        for name in NAMED:
            yield from _map(schema.get(name)).values()
        for name in REFERENCES:
            if isinstance(schema.get(name), str):
                yield self._resolved(schema[name])

    def _resolved(self, reference: str) -> Any:
        _, _, fragment = reference.partition("#")
        if not fragment.startswith("/"):
            return self._anchors.get(fragment, self._root)
        found = self._root
        for step in fragment[1:].split("/"):
            name = step.replace("%25", "%").replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            elif isinstance(found, Mapping) and name in found:
                found = found[name]
            else:
                return self._root
        return found


def _children(schema: Schema) -> Iterator[list[Any]]:
    """What is applied together to one of the values inside, for every kind of them."""
    patterns = list(_map(schema.get("patternProperties")).values())
    for one in _map(schema.get("properties")).values():
        yield [one, *patterns]
    yield [*patterns, *(schema[name] for name in REST if name in schema)]
    elements = [schema[name] for name in ELEMENTS if name in schema]
    items = schema.get("items")
    each = [*_list(items), *_list(schema.get("prefixItems"))]
    for one in each or [None]:
        yield [*([one] if one is not None else []), *elements]
    if isinstance(items, Mapping):
        yield [items, *elements]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
