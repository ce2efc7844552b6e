"""Write what the command line is made of from the table of routes, and its reference page.

src/betimes/cli/surface.py   every operation with what one may say to it
docs/reference/cli.md        every command with its help
"""

import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from betimes.api.route import Keyed, NoQuery, Route
from betimes.api.routes import ROUTES
from betimes.wire.base import Page

ROOT = Path(__file__).resolve().parent.parent
SURFACE = ROOT / "src" / "betimes" / "cli" / "surface.py"
PAGE = ROOT / "docs" / "reference" / "cli.md"
NOT_OFFERED = frozenset({"meta.reference", "meta.error"})
# Second names of members, kept for callers of old; and what paging and output take care of.
LEFT_OUT = frozenset(
    {"runAt", "cron", "payloadRef", "idempotencyKey", "dedupe_key", "cursor", "fields", "count"}
)
COUNTED = frozenset({"jobs.next", "jobs.skip_next", "schedules.preview"})
"""Where `count` is a number of things and no wish for an estimate."""


def main() -> int:
    """Write both."""
    SURFACE.write_text(surface(), encoding="utf-8")
    print(f"wrote {SURFACE.name}")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
    return 0


def surface() -> str:
    """The table, formatted."""
    lines = [
        '"""Every operation as the command line offers it.',
        "",
        "Long because it is generated: one entry for each operation.",
        '"""',
        "",
        "# Written by scripts/write_cli.py; do not edit.",
        "",
        "from betimes.cli.offer import Member, Offer",
        "",
        "OFFERS: dict[str, Offer] = {",
        *(f'    "{route.name}": {offer(route)},' for route in offered()),
        "}",
        "",
    ]
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(SURFACE)]
    done = subprocess.run(
        [*command, "-"], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    return done.stdout


def page() -> str:
    """The reference page; the tree is read only after the table was written."""
    from betimes.cli.reference import markdown  # noqa: PLC0415 -- see above

    return markdown()


def offered() -> list[Route]:
    """Routes that a person may call."""
    return [route for route in ROUTES if route.name not in NOT_OFFERED]


def offer(route: Route) -> str:
    """One operation as source."""
    parts = [repr(route.method), repr(route.path), repr(route.says)]
    if route.parameters:
        parts.append(f"parameters={route.parameters!r}")
    query = [] if route.query is NoQuery else list(members(route.query, route.name))
    if query:
        parts.append(f"query={written(query)}")
    parts += body_of(route)
    if any(typing.get_origin(kind) is Page for kind in route.answers.values()):
        parts.append("pages=True")
    if route.keyed is not Keyed.NO:
        parts.append("keyed=True")
    known = {one.encode_name for one in msgspec.structs.fields(route.query)}
    if route.tries or "validate_only" in known:
        parts.append("tries=True")
    return f"Offer({', '.join(parts)})"


def body_of(route: Route) -> list[str]:
    """How a body is made."""
    if route.body is None:
        return []
    if route.body is bytes:
        return ["raw=True"]
    if not is_struct(route.body):
        return ["whole=True"]
    return [f"body={written(list(members(route.body, route.name)))}"]


def written(found: list[str]) -> str:
    """Members as a tuple."""
    return f"({''.join(f'{one}, ' for one in found)})"


def members(shape: Any, operation: str, inside: str = "") -> Iterator[str]:
    """Every member as source; objects inside are taken apart."""
    names = {one.encode_name for one in msgspec.structs.fields(shape)}
    for one in msgspec.structs.fields(shape):
        if one.encode_name == "dedupe_key" and "dedupe" not in names:
            yield "Member('dedupe_key', 'text', required=True)"
            continue
        counted = one.encode_name == "count" and (operation in COUNTED or inside)
        if (one.encode_name in LEFT_OUT and not counted and not inside) or (
            one.encode_name == "validate_only"
        ):
            continue
        place = f"{inside}{one.encode_name}"
        kind, choices = kind_of(one.type)
        if is_struct(kind):
            yield from members(kind, operation, f"{place}.")
            continue
        parts = [repr(place), repr(kind)]
        if choices:
            parts.append(repr(choices))
        if one.required and (not inside or inside == "filter."):
            parts.append("required=True")
        if one.default is True:
            parts.append("default_true=True")
        yield f"Member({', '.join(parts)})"


def is_struct(kind: Any) -> bool:
    """Whether a type is one of our shapes."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


PLAIN = {str: "text", int: "int", float: "number", bool: "switch"}


def kind_of(kind: Any) -> tuple[Any, tuple[str, ...]]:
    """How a value is said, and what it may be."""
    bare, notes = unwrapped(kind)
    origin, inner = typing.get_origin(bare), typing.get_args(bare)
    if origin is typing.Literal:
        return "choice", tuple(str(one) for one in inner)
    if origin in (typing.Union, types.UnionType):
        return united(inner, notes)
    if origin is list:
        element, choices = kind_of(inner[0])
        if element == "choice":
            return "choices", choices
        return ("texts" if element == "text" else "json"), ()
    if origin is dict and inner == (str, str):
        return "pairs", ()
    if origin is dict and inner == (str, int):
        return "numbers", ()
    if is_struct(bare):
        return bare, ()
    if any("date-time" in str(note.extra_json_schema) for note in notes):
        return "time", ()
    return PLAIN.get(bare, "json"), ()


def united(inner: tuple[Any, ...], notes: list[msgspec.Meta]) -> tuple[str, tuple[str, ...]]:
    """A union: what is left of it without null."""
    if set(inner) == {str, int, float}:
        return "duration", ()
    if any(note.examples for note in notes):
        return "schedule", ()
    return "json", ()


def unwrapped(kind: Any) -> tuple[Any, list[msgspec.Meta]]:
    """A type without its notes and without null."""
    notes: list[msgspec.Meta] = []
    while True:
        origin = typing.get_origin(kind)
        if origin is typing.Annotated:
            kind, *more = typing.get_args(kind)
            notes += [note for note in more if isinstance(note, msgspec.Meta)]
            continue
        if origin in (typing.Union, types.UnionType):
            empty = (type(None), msgspec.UnsetType)
            left = [one for one in typing.get_args(kind) if one not in empty]
            if len(left) == 1:
                kind = left[0]
                continue
        return kind, notes


if __name__ == "__main__":
    sys.exit(main())
