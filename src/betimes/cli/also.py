"""Shorter ways to say what an operation takes: an option that means another one."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import click

from betimes.cli.offer import Member, Offer
from betimes.cli.parts import schedule_options

PLAIN_SPAN = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhdw])+")
FILTER = "filter."
LINE = "q"
"""The member of a filter that takes a whole line; the service reads it."""


class Also(NamedTuple):
    """An option beside those of the operation: which member it means, and how it is read."""

    flag: str
    place: str
    metavar: str
    says: str
    read: Callable[[str], Any]

    @property
    def key(self) -> str:
        """As a parameter of a function."""
        return f"also_{self.flag.strip('-').replace('-', '_')}"


def hours(text: str) -> str:
    """So many hours from now."""
    if re.fullmatch(r"[0-9]{1,4}", text):
        return f"{text}h"
    raise click.BadParameter(f"expected a number of hours, got {text!r}.")


def rate(text: str) -> float:
    """`20/s`, `600/m`, or a plain number for each second."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(?:/(s|m|h))?", text)
    if found is None:
        raise click.BadParameter(f"expected a rate such as 20/s, got {text!r}.")
    return float(found[1]) / {"s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def back(text: str) -> str:
    """A plain span looks back: `1h` is an hour ago. What says its side itself stays as it is."""
    return f"-{text}" if PLAIN_SPAN.fullmatch(text.strip()) else text


ALSO: Mapping[str, tuple[Also, ...]] = {
    "forecast.read": (
        Also("--hours", "to", "NUMBER", "How many hours ahead to look.", hours),
        Also("--by", "group_by", "WHAT", "The same as --group-by.", str),
    ),
    "runs.list": (
        Also(
            "--since", "due_after", "TIME", "Only what was due after this; 1h is an hour ago.", back
        ),
        Also("--until", "due_before", "TIME", "Only what was due before this.", back),
    ),
    "dead_letters.bulk": (
        Also("--rate", "rate_per_second", "RATE", "How many a second, such as 20/s.", rate),
    ),
}
"""By the operation."""


def options_of(operation: str, offer: Offer) -> list[click.Parameter]:
    """The further options of a command."""
    made: list[click.Parameter] = [
        click.Option([one.flag, one.key], metavar=one.metavar, help=one.says)
        for one in ALSO.get(operation, ())
    ]
    if operation == "jobs.create":
        made += schedule_options()
    if names := _filters(offer):
        said = f"All of it in one line, such as '{names[0]}:VALUE'."
        if LINE in names:
            said = "All of it in one line, such as 'handler:charge error:Timeout since:2h'."
        made.append(click.Option(["--filter", "also_filter"], metavar="LINE", help=said))
    return made


def meant(operation: str, offer: Offer, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, with what the further options mean in its own place."""
    found = dict(given)
    members = {one.place: one for one in (*offer.query, *(offer.body or ()))}
    for one in ALSO.get(operation, ()):
        if (text := found.pop(one.key, None)) is not None:
            _say(found, members[one.place], one.read(text), one.flag)
    if (line := found.pop("also_filter", None)) is not None:
        names = _filters(offer)
        for name, value in [(LINE, line)] if LINE in names else _pairs(line, names):
            _say(found, members[f"{FILTER}{name}"], value, "--filter")
    return found


def _say(found: dict[str, Any], member: Member, value: Any, flag: str) -> None:
    if found.get(member.key) not in (None, ()):
        raise click.UsageError(f"{flag} and --{member.name} say the same; say one of them.")
    found[member.key] = (value,) if member.kind in ("texts", "choices", "pairs") else value


def _filters(offer: Offer) -> list[str]:
    """What a filter may name, in the body of an operation."""
    kinds = ("text", "texts", "choices")
    return [
        one.place.removeprefix(FILTER)
        for one in offer.body or ()
        if one.place.startswith(FILTER) and one.kind in kinds
    ]


def _pairs(line: str, names: Iterable[str]) -> Iterable[tuple[str, str]]:
    known = list(names)
    for part in shlex.split(line):
        name, colon, value = part.partition(":")
        if not colon or name not in known:
            shown = ", ".join(f"{one}:" for one in known)
            raise click.BadParameter(f"expected {shown} in --filter, got {part!r}.")
        yield name, value
