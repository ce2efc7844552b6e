"""The document is made from the code, and the committed copy is the same."""

from pathlib import Path
from typing import Any

import msgspec

import betimes
from betimes.api.openapi import document
from betimes.api.routes import ROUTES

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_the_committed_document_is_the_present_one() -> None:
    told = msgspec.json.encode(document(ROUTES, version=betimes.__version__))
    assert msgspec.json.decode(COMMITTED.read_bytes()) == msgspec.json.decode(told), (
        "run .venv/bin/python scripts/write_openapi.py"
    )


def test_every_reference_leads_somewhere() -> None:
    told = document(ROUTES, version="0")
    known = set(told["components"]["schemas"])
    assert set(references(told)) <= {f"#/components/schemas/{name}" for name in known}
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for part in value.values() for found in references(part)]
    if isinstance(value, list):
        return [found for part in value for found in references(part)]
    return []
