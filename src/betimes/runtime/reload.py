"""For development: a worker that is started anew when its code changes."""

from collections.abc import Iterable
from pathlib import Path

SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
FILES_MAX = 20_000


def sources(folder: Path) -> Iterable[Path]:
    """Python files below a folder; what is hidden or installed is not looked at."""
    waiting, seen = [folder], 0
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if path.name.startswith(".") or path.name in SKIPPED:
                continue
            if path.is_dir() and not path.is_symlink():
                waiting.append(path)
            elif path.suffix == ".py":
                yield path
                seen += 1
                if seen >= FILES_MAX:
                    return


def fingerprint(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Differs when a file was added, removed or changed."""
    found = set()
    for path in sources(folder):
        try:
            told = path.stat()
        except FileNotFoundError:
            continue
        found.add((str(path), told.st_mtime_ns, told.st_size))
    return frozenset(found)
