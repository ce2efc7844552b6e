"""Find the part of that name and run it."""

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run one part, or list them all."""
    parts = sorted(
        file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_")
    )
    if not arguments:
        print("parts:", *parts)
        return 0
    name, *rest = arguments
    if name not in parts:
        print(f"expected a part out of {', '.join(parts)}, got {name!r}", file=sys.stderr)
        return 2
    result: int = importlib.import_module(f"bench.{name}").main(rest)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
