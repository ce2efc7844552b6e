"""Where values come from: a TOML file, variables, flags. Each value remembers its origin."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from betimes.config.problems import did_you_mean
from betimes.config.rule import ENVIRONMENT_PREFIX, Key

FILE_SIZE_MAX = 1_000_000
# Variables of ours that are no settings: the client's, the tests', and the name of the file itself.
OTHER_VARIABLES = re.compile(
    r"BETIMES_(CONFIG|OUTPUT|URL|PROFILE|TENANT|API_KEY|API_KEY_FILE|DEBUG|(TEST|BENCH)_\w+)"
)
# Kubernetes describes a service called `betimes` to every pod with variables of these shapes.
SERVICE_LINKS = re.compile(
    r"BETIMES_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
TABLE_LINE = re.compile(r"\s*\[\s*([\w.\-]+)\s*\]")
KEY_LINE = re.compile(r"\s*([\w.\-]+)\s*=")


@dataclass(frozen=True, slots=True)
class Flag:
    """A value given on the command line: which key, which flag said so, and what."""

    key: str
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Given:
    """A raw value and the place it came from."""

    raw: object
    origin: str


@dataclass(slots=True)
class Gathered:
    """Raw values by key, later sources over earlier ones, and what was wrong on the way."""

    values: dict[str, Given] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def gather_file(path: Path, keys: Mapping[str, Key], into: Gathered) -> None:
    """Read a TOML file of tables; unknown tables and keys are problems."""
    try:
        if path.stat().st_size > FILE_SIZE_MAX:
            into.problems.append(f"{path}: expected a configuration file, got more than 1 MB.")
            return
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        into.problems.append(f"{path}: the configuration file cannot be read: {reason}.")
    except tomllib.TOMLDecodeError as error:
        into.problems.append(f"{path}: expected TOML, got a mistake: {error}.")
    else:
        _take_document(document, _Lines(path, text), keys, into)


def gather_environment(environ: Mapping[str, str], keys: Mapping[str, Key], into: Gathered) -> None:
    """Read our variables; an empty one counts as not set, an unknown one is a problem."""
    by_name = {key.environment_name: key for key in keys.values()}
    for name in sorted(name for name in environ if name.startswith(ENVIRONMENT_PREFIX)):
        if key := by_name.get(name):
            if environ[name].strip():
                into.values[key.path] = Given(environ[name], f"variable {name}")
        elif not OTHER_VARIABLES.fullmatch(name) and not SERVICE_LINKS.fullmatch(name):
            guess = did_you_mean(name, by_name)
            into.problems.append(f"{name}: no setting has this variable{guess or '.'}")


def gather_flags(flags: Iterable[Flag], keys: Mapping[str, Key], into: Gathered) -> None:
    """Take what the command line said; None means that it said nothing."""
    for flag in flags:
        if flag.key not in keys:
            guess = did_you_mean(flag.key, keys)
            into.problems.append(f"{flag.key}: flag {flag.name} names no setting{guess or '.'}")
        elif flag.value is not None:
            into.values[flag.key] = Given(flag.value, f"flag {flag.name}")


@dataclass(frozen=True, slots=True)
class _Lines:
    """Finds the line of a key again, which the TOML reader does not tell."""

    path: Path
    text: str

    def origin(self, wanted: str) -> str:
        table = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if match := TABLE_LINE.match(line):
                table = match[1] + "."
                if match[1] == wanted:
                    return f"{self.path}:{number}"
            elif (match := KEY_LINE.match(line)) and table + match[1] == wanted:
                return f"{self.path}:{number}"
        return str(self.path)


def _take_document(
    document: dict[str, Any], lines: _Lines, keys: Mapping[str, Key], into: Gathered
) -> None:
    groups = {key.group for key in keys.values()}
    for group, table in document.items():
        if group not in groups:
            guess = did_you_mean(group, groups)
            into.problems.append(
                f"{group}: {lines.origin(group)} is no table of ours{guess or '.'}"
            )
        elif not isinstance(table, dict):
            origin = lines.origin(group)
            into.problems.append(f"{group}: expected a table [{group}], got {table!r} ({origin}).")
        else:
            for name, raw in table.items():
                path = f"{group}.{name}"
                if path in keys:
                    into.values[path] = Given(raw, lines.origin(path))
                else:
                    guess = did_you_mean(path, keys)
                    into.problems.append(
                        f"{path}: {lines.origin(path)} names no setting{guess or '.'}"
                    )
