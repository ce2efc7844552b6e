"""Checks of the tree that no linter makes: lock files name no host, no file grows without a reason.

A file of more than 400 lines must say why in a line that starts with `Long because`.
"""

import re
import subprocess
import sys
from pathlib import Path

LINES_MAX = 400
ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Print every complaint; fail when there is one."""
    files = [ROOT / name for name in git("ls-files", "-co", "--exclude-standard").splitlines()]
    complaints = [
        *hosts_in_locks(files),
        *paths_of_this_machine(files),
        *long_files(files),
        *homes(files),
    ]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


def hosts_in_locks(files: list[Path]) -> list[str]:
    """A lock file with an address ties everybody to one registry."""
    locks = [file for file in files if "lock" in file.name and file.suffix in {".lock", ".json"}]
    return [f"{file.name}: names a host" for file in locks if "://" in read(file)]


def paths_of_this_machine(files: list[Path]) -> list[str]:
    """An absolute path of the working copy or of a home means nothing elsewhere."""
    needles = (f"{ROOT}/", f"{Path.home()}/")
    return [
        f"{file.relative_to(ROOT)}: contains a path of this machine"
        for file in files
        if any(needle in read(file) for needle in needles)
    ]


def homes(files: list[Path]) -> list[str]:
    """A folder called `~` is a path that nobody expanded, and holds what was meant for a home."""
    return [
        f"{file.relative_to(ROOT)}: lies in a folder called ~"
        for file in files
        if file.exists() and "~" in file.relative_to(ROOT).parts
    ]


def long_files(files: list[Path]) -> list[str]:
    """Split by noun and by verb before the big file forms."""
    return [
        f"{file.relative_to(ROOT)}: {lines} lines; split it, or say `Long because …` in it"
        for file in files
        if file.suffix in {".py", ".sql", ".js", ".ts", ".svelte"}
        and (lines := read(file).count("\n")) > LINES_MAX
        and not re.search(r"^\W*Long because", read(file), re.MULTILINE)
    ]


def read(file: Path) -> str:
    """The text of a file, or nothing for what is not text or is gone."""
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return ""


def git(*arguments: str) -> str:
    """What git answers."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
