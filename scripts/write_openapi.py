"""Write docs/reference/openapi.json from the table of routes."""

import sys
from pathlib import Path

import msgspec

import betimes
from betimes.api.openapi import document
from betimes.api.routes import ROUTES

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "openapi.json"


def text() -> str:
    """The document as it is committed."""
    told = msgspec.json.encode(document(ROUTES, version=betimes.__version__))
    return msgspec.json.format(told, indent=1).decode() + "\n"


def main() -> int:
    """Write it."""
    TARGET.write_text(text(), encoding="utf-8")
    print(f"wrote {TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
