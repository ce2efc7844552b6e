"""Create the virtual environment, also where Debian has left ensurepip out of Python.

Usage: python3 scripts/make_venv.py .venv
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)


def main() -> int:
    """Make the environment or say in one sentence what is missing."""
    target = Path(sys.argv[1])
    if sys.version_info < OLDEST_PYTHON:
        got = ".".join(str(part) for part in sys.version_info[:3])
        print(f"betimes needs Python 3.11 or newer, got {got} ({sys.executable}).", file=sys.stderr)
        return 1
    for attempt in (by_venv, by_other_tools, by_debian_package):
        if attempt(target) and (target / "bin" / "python").exists():
            return 0
        shutil.rmtree(target, ignore_errors=True)
    print(
        "This Python cannot create virtual environments (its ensurepip module is missing). "
        "On Debian and Ubuntu: apt-get install python3-venv",
        file=sys.stderr,
    )
    return 1


def by_venv(target: Path) -> bool:
    """Use the standard library, the normal case."""
    return run(sys.executable, "-m", "venv", str(target))


def by_other_tools(target: Path) -> bool:
    """Use virtualenv, or a pip that can install into a pip-less environment."""
    if run(sys.executable, "-m", "virtualenv", "-q", str(target)):
        return True
    return run(sys.executable, "-m", "venv", "--without-pip", str(target)) and run(
        sys.executable, "-m", "pip", "--python", str(target), "install", "-q", "pip"
    )


def by_debian_package(target: Path) -> bool:
    """As root on Debian, install the missing package ourselves."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return False
    print("installing python3-venv …", file=sys.stderr)
    package = f"python3.{sys.version_info.minor}-venv"
    installed = run("apt-get", "install", "-qqy", package) or (
        run("apt-get", "update", "-qq") and run("apt-get", "install", "-qqy", package)
    )
    return installed and by_venv(target)


def run(*command: str) -> bool:
    """Run a command quietly; tell whether it worked."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
