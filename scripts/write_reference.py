"""Write the reference pages that are made from the code."""

import sys
from pathlib import Path

from betimes.config.reference import markdown

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write each page anew."""
    page = ROOT / "docs" / "reference" / "configuration.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(markdown(), encoding="utf-8")
    print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
