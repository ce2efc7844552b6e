"""What a check may cost is known before it is paid."""

import json
from typing import Any

import pytest

from betimes.ops.schema_cost import affordable
from betimes.ops.schemas import Accepted

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "left": {"$ref": "#/$defs/node"},
                "right": {"$ref": "#/$defs/node"},
                "leaves": {"type": "array", "items": {"$ref": "#/$defs/leaf"}},
            },
        },
        "leaf": {"anyOf": [{"type": "string"}, {"type": "number"}, {"const": None}]},
    },
    "$ref": "#/$defs/node",
}
RECORDS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id"],
        "properties": {f"field{n}": {"type": ["string", "null"]} for n in range(40)},
        "additionalProperties": False,
    },
}


def doubling(levels: int) -> dict[str, Any]:
    """Applies itself twice to the same value at every step."""
    steps: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(levels)
    }
    return {"$defs": {**steps, f"d{levels}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def nested(levels: int, name: str = "x") -> bytes:
    return (f'{{"{name}":' * levels + "{}" + "}" * levels).encode()


TWICE = {"allOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]}
TWICE_BY_ANCHOR = {
    "$dynamicAnchor": "me",
    "properties": {"x": {"$dynamicRef": "#me"}},
    "patternProperties": {".": {"$ref": "#"}},
}
LONG = {
    "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3_000)},
    "$ref": "#/$defs/d0",
}
TWICE_IN_ITEMS = {"items": {"$ref": "#"}, "contains": {"$ref": "#"}}


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (TREE, nested(60, "left")),
        (RECORDS, json.dumps([{"id": n, "field1": "x"} for n in range(10_000)]).encode()),
        (doubling(12), b"{}"),
        (TWICE, nested(12)),
        ({}, nested(64)),
        ({"$ref": "#"}, b"{}"),
        (True, b"{}"),
    ],
)
def test_what_is_ordinary_is_affordable(schema: Any, payload: bytes) -> None:
    assert affordable(json.dumps(schema), payload)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (doubling(40), b"{}"),
        (TWICE, nested(60)),
        (TWICE_BY_ANCHOR, nested(60)),
        (TWICE_IN_ITEMS, b"[" * 60 + b"]" * 60),
        (doubling(12), json.dumps([{}] * 10_000).encode()),
        (LONG, b"{}"),
    ],
)
def test_what_doubles_is_left_to_workers(schema: Any, payload: bytes) -> None:
    text = json.dumps(schema)
    assert not affordable(text, payload)
    # Were it checked all the same, the test would not end in its time.
    Accepted({"h": [text]}).check("h", payload)
