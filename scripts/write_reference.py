"""Write the reference pages that are made from the code."""

import sys
from pathlib import Path

from betimes.api import event_page
from betimes.config import reference

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Write each page anew."""
    folder = ROOT / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"configuration.md": reference.markdown, "events.md": event_page.markdown}
    for name, markdown in pages.items():
        (folder / name).write_text(markdown(), encoding="utf-8")
        print((folder / name).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
