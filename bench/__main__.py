"""Find the part of that name and run it, or all of them one after the other."""

import importlib
import sys
from pathlib import Path

ALL = "all"
BY_NAME_ONLY = ("peers",)
"""Not among all: needs a network, for what it measures beside us."""


def main(arguments: list[str]) -> int:
    """Run one part, every part with the name `all`, or list them."""
    parts = sorted(
        file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_")
    )
    if not arguments:
        print("parts:", ALL, *parts)
        return 0
    name, *rest = arguments
    if name == ALL:
        return max(run(part, rest) for part in parts if part not in BY_NAME_ONLY)
    if name not in parts:
        print(f"expected a part out of {', '.join([ALL, *parts])}, got {name!r}", file=sys.stderr)
        return 2
    return run(name, rest)


def run(part: str, arguments: list[str]) -> int:
    """One part; its exit code."""
    result: int = importlib.import_module(f"bench.{part}").main(arguments)
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
