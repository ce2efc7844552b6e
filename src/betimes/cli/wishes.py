"""What every command understands: whom to ask, and how to show the answer.

The options stand before or after the command; `betimes options` lists them, the help of a single
command does not, so that it shows what is its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import click

FORMS = ("table", "wide", "json", "yaml", "jsonl", "name", "csv")


@dataclass(slots=True)
class Wishes:
    """What was asked for on the line; None where nothing was said."""

    profile: str | None = None
    url: str | None = None
    api_key_file: str | None = None
    tenant: str | None = None
    output: str | None = None
    query: str | None = None
    fields: str | None = None
    no_headers: bool | None = None
    utc: bool | None = None
    tz: str | None = None
    no_color: bool | None = None
    quiet: bool | None = None
    timeout: float | None = None
    yes: bool | None = None


class Shared(NamedTuple):
    """One option that every command has."""

    flags: tuple[str, ...]
    key: str
    says: str
    metavar: str | None = None
    kind: Any = str


SHARED = (
    Shared(("--profile",), "profile", "Profile to use, instead of the default one.", "NAME"),
    Shared(("--url",), "url", "Address of the service.", "URL"),
    Shared(("--api-key-file",), "api_key_file", "File that holds the API key.", "FILE"),
    Shared(("--tenant",), "tenant", "Act for this tenant; needs an administrator's key.", "SLUG"),
    Shared(("-o", "--output"), "output", "Form of what is printed.", None, click.Choice(FORMS)),
    Shared(("--query",), "query", "Print only what this JMESPath picks.", "JMESPATH"),
    Shared(("--fields",), "fields", "Print only these members, in this order.", "A,B"),
    Shared(("--no-headers",), "no_headers", "Tables without their first line.", None, bool),
    Shared(("--utc",), "utc", "Show and read times in UTC.", None, bool),
    Shared(("--tz",), "tz", "Show and read times in this zone.", "ZONE"),
    Shared(("--no-color",), "no_color", "No colours, whatever the terminal can do.", None, bool),
    Shared(("-q", "--quiet"), "quiet", "Say nothing but data and errors.", None, bool),
    Shared(("--timeout",), "timeout", "Seconds to wait for one answer.", "SECONDS", float),
    Shared(("-y", "--yes"), "yes", "Do not ask whether it is meant.", None, bool),
)


def shared_options(
    keep: Callable[[click.Context], Wishes], *, hidden: bool, taken: frozenset[str] = frozenset()
) -> list[click.Option]:
    """The options, without those flags that a command has taken for itself."""
    made = []
    for shared in SHARED:
        flags = [flag for flag in shared.flags if flag not in taken]
        if not flags or (flags[0].startswith("--") is False and len(flags) < len(shared.flags)):
            continue
        made.append(_option(shared, flags, keep, hidden=hidden))
    return made


def _option(
    shared: Shared, flags: list[str], keep: Callable[[click.Context], Wishes], *, hidden: bool
) -> click.Option:
    def remember(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value is not None:
            setattr(keep(context), shared.key, value)

    switch = shared.kind is bool
    return click.Option(
        [*flags, f"shared_{shared.key}"], default=None, expose_value=False, callback=remember,
        is_flag=switch, flag_value=True if switch else None, metavar=shared.metavar,
        type=shared.kind, help=shared.says, hidden=hidden,
    )  # fmt: skip
