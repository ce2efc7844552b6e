"""What was said on the line, as the API takes it: options from members, values from options."""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import click

from betimes.cli.offer import Member
from betimes.cli.times import read_time
from betimes.cli.words import WORDS

METAVARS = {
    "text": "TEXT", "time": "TIME", "duration": "DURATION", "int": "NUMBER", "number": "NUMBER",
    "texts": "TEXT", "pairs": "KEY=VALUE", "numbers": "NAME=NUMBER", "json": "JSON",
    "schedule": "SCHEDULE",
}  # fmt: skip
SHORT = {"queue": "-Q", "filter.queue": "-Q", "tag": "-l", "tags": "-l", "count": "-n"}
FROM_FILES = frozenset({"ics", "value", "value_base64"})
"""Texts that are too long, or too secret, for a line that others may read."""
SINCE, UNTIL = "since", "until"
"""Who asks since when looks back: plain spans of both lie behind."""
MULTIPLE = frozenset({"texts", "choices", "pairs", "numbers"})
PLAIN = re.compile(r"[0-9.]+")
DURATION = re.compile(r"P[0-9A-Z.,]+|[0-9.]+|(?:[0-9.]+(?:ms|s|m|h|d|w))+")


def option_of(member: Member) -> click.Option:
    """The flag of a member."""
    flag = f"--{member.name}"
    flags = [SHORT[member.place], flag] if member.place in SHORT else [flag]
    says = WORDS.get(member.place, "")
    if member.kind == "switch":
        both = f"{flag}/--no-{member.name}" if member.default_true else flag
        return click.Option([both, member.key], default=None, is_flag=True, help=says)
    return click.Option(
        [*flags, member.key], type=type_of(member), help=says, metavar=METAVARS.get(member.kind),
        multiple=member.kind in MULTIPLE, required=member.required,
        default=None,
    )  # fmt: skip


def type_of(member: Member) -> Any:
    """The type that click checks."""
    if member.choices:
        return click.Choice(member.choices)
    return {"int": int, "number": float}.get(member.kind, str)


def argument_of(member: Member) -> click.Argument:
    """A member that is said without a flag."""
    several = member.kind in MULTIPLE
    name = member.name.upper()
    shown = name if member.required else f"[{name}]"
    return click.Argument(
        [member.key], required=member.required, nargs=-1 if several else 1,
        metavar=None if member.choices else shown + ("..." if several else ""),
        type=type_of(member),
    )  # fmt: skip


def body_of(
    members: Iterable[Member], given: Mapping[str, Any], *, now: datetime, zone: tzinfo
) -> dict[str, Any]:
    """The body that the options make; what was not said is not sent."""
    body: dict[str, Any] = {}
    known = list(members)
    back = frozenset({SINCE, UNTIL} if any(one.place == SINCE for one in known) else ())
    for member in known:
        value = given.get(member.key)
        if value is None or value == ():
            continue
        into = body
        *inside, last = member.place.split(".")
        for step in inside:
            into = into.setdefault(step, {})
        behind = member.place in back
        into[last] = value_of(member, value, now=now, zone=zone, behind=behind)
    return body


def query_of(
    members: Iterable[Member], given: Mapping[str, Any], *, now: datetime, zone: tzinfo
) -> dict[str, Any]:
    """The query that the options make."""
    found = body_of(members, given, now=now, zone=zone)
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }


def value_of(
    member: Member, value: Any, *, now: datetime, zone: tzinfo, behind: bool = False
) -> Any:
    """One value as the API takes it."""
    match member.kind:
        case "time":
            return read_time(value, now=now, zone=zone, behind=behind)
        case "duration":
            return duration(value)
        case "json":
            return json_value(value)
        case "schedule":
            return json_value(value) if value.lstrip().startswith(("{", "@/", "@.")) else value
        case "pairs":
            return dict(pair(one) for one in value)
        case "numbers":
            return {name: whole(name, number) for name, number in map(pair, value)}
        case "texts" | "choices":
            return [part for one in value for part in _parts(member, one)]
        case "text" if member.place in FROM_FILES and (value == "-" or value.startswith("@")):
            return content_of(value).removesuffix("\n")
        case _:
            return value


def _parts(member: Member, value: str) -> list[str]:
    """A list may be said with commas where its elements cannot hold one."""
    if member.place in ("tag", "filter.tag"):  # filters say key:value, people say key=value as well
        return [":".join(pair(value))]
    return value.split(",") if member.place in ("state", "queue", "queues", "types") else [value]


def duration(text: str) -> str:
    """A length of time, looked at before it travels; a plain number counts seconds."""
    if DURATION.fullmatch(text):
        return f"{text}s" if PLAIN.fullmatch(text) else text
    raise click.BadParameter(f"expected a duration such as 10m, 1h30m or PT15M, got {text!r}.")


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE, or KEY:VALUE as filters write it."""
    found = re.fullmatch(r"([^=:]+)[=:](.*)", text, re.DOTALL)
    if found is None:
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}.")
    return found[1], found[2]


def whole(name: str, text: str) -> int:
    """A whole number under a name."""
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    raise click.BadParameter(f"expected {name} as a whole number, got {text!r}.")


def json_value(text: str) -> Any:
    """JSON as it stands, or from a file (@FILE) or standard input (-)."""
    source = content_of(text) if text == "-" or text.startswith("@") else text
    try:
        return json.loads(source)
    except json.JSONDecodeError as fault:
        raise click.BadParameter(
            f"expected JSON, @FILE or -, got {text[:60]!r}: {fault.msg} at column {fault.colno}."
        ) from None


def content_of(text: str) -> str:
    """What a file, or standard input, holds."""
    if text == "-":
        return sys.stdin.read()
    try:
        return Path(text.removeprefix("@")).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise click.BadParameter(f"expected a file to read, got {fault}.") from None


def document_of(path: str) -> dict[str, Any]:
    """A YAML or JSON file that holds one object."""
    import yaml  # noqa: PLC0415 -- only who names a file pays for it

    try:
        found = yaml.safe_load(content_of(path if path == "-" else f"@{path}"))
    except yaml.YAMLError as fault:
        raise click.BadParameter(f"expected YAML or JSON in {path}, got {fault}") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"expected an object in {path}, got {type(found).__name__}.")
    return found
