"""Settings from outside: file < environment < flags. The one reader of the environment.

Nothing stops at the first mistake: `examine` collects every problem, `load` refuses them together.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from betimes.config.check import cross_problems
from betimes.config.dsn import read_dsn
from betimes.config.problems import BadSettings
from betimes.config.rule import Key, keys_of
from betimes.config.settings import Settings
from betimes.config.sources import (
    Flag,
    Gathered,
    Given,
    gather_environment,
    gather_file,
    gather_flags,
)
from betimes.config.values import quote, read_value

DEFAULT_FILE = Path("betimes.toml")
DEFAULT_ORIGIN = "default"
FILE_VARIABLE = "BETIMES_CONFIG"


@dataclass(frozen=True, slots=True)
class Examined:
    """Settings as far as they could be read, where each came from, and all that is wrong.

    A setting with a problem holds its default here, so that the rest can still be shown.
    """

    settings: Settings
    origins: Mapping[str, str]
    problems: tuple[str, ...]


def load(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Iterable[Flag] = (),
) -> Settings:
    """The settings of this process, or `BadSettings` with a sentence for every mistake."""
    examined = examine(file=file, environ=environ, flags=flags)
    if examined.problems:
        raise BadSettings(examined.problems)
    return examined.settings


def examine(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Iterable[Flag] = (),
) -> Examined:
    """Read every source and judge every value, without refusing anything."""
    keys = keys_of(Settings)
    gathered = Gathered()
    if chosen := _file(file, environ):
        gather_file(chosen, keys, gathered)
    _gather_conventions(environ, gathered)
    gather_environment(environ, keys, gathered)
    gather_flags(flags, keys, gathered)
    values = _read(gathered, keys)
    settings = _build(values)
    problems = [*gathered.problems, *cross_problems(settings)]
    origins = dict.fromkeys(keys, DEFAULT_ORIGIN) | {
        path: given.origin for path, given in gathered.values.items()
    }
    return Examined(settings, origins, tuple(problems))


def _file(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    if named is not None:
        return named
    if environ.get(FILE_VARIABLE):
        return Path(environ[FILE_VARIABLE])
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def _gather_conventions(environ: Mapping[str, str], into: Gathered) -> None:
    """Variables that are not ours and mean the same to every program."""
    if environ.get("NO_COLOR"):  # whatever its value
        into.values["log.colour"] = Given("false", "variable NO_COLOR")
    home = environ.get("XDG_DATA_HOME", "")
    if home.startswith("/"):  # the specification says to ignore relative paths
        into.values["embedded.home"] = Given(home, "variable XDG_DATA_HOME")


def _read(gathered: Gathered, keys: Mapping[str, Key]) -> dict[str, Any]:
    home = Given(keys["embedded.home"].default, DEFAULT_ORIGIN)  # read, so that ~ is expanded
    given = {"embedded.home": home, **gathered.values}
    values: dict[str, Any] = {}
    for path, value in given.items():
        try:
            values[path] = read_value(keys[path], value.raw)
        except ValueError as error:
            got = quote(keys[path], value.raw)
            gathered.problems.append(f"{path}: expected {error}, got {got} ({value.origin}).")
    for path in ("database.dsn", "database.listen_dsn"):
        if path in values:
            _read_address(path, values, gathered)
    return values


def _read_address(path: str, values: dict[str, Any], gathered: Gathered) -> None:
    try:
        address = read_dsn(values[path])
    except ValueError as error:
        origin = gathered.values[path].origin
        del values[path]
        gathered.problems.append(
            f"{path}: expected an address like postgresql://user@host:5432/name, got {error} "
            f"({origin})."
        )
        return
    values[path] = address.dsn
    if address.pgbouncer and path == "database.dsn":
        values["database.pgbouncer"] = True
        gathered.values["database.pgbouncer"] = Given("true", gathered.values[path].origin)


def _build(values: Mapping[str, Any]) -> Settings:
    groups = get_type_hints(Settings)
    by_group: dict[str, dict[str, Any]] = {group: {} for group in groups}
    for path, value in values.items():
        group, _, name = path.partition(".")
        by_group[group][name] = value
    return Settings(**{group: kind(**by_group[group]) for group, kind in groups.items()})
