"""How things look as text: columns, tables, lists of members. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from betimes.cli.times import exact, milliseconds, moment_of, relative, span

GREEN, RED, YELLOW, CYAN, DIM, BOLD = "32", "31", "33", "36", "2", "1"
COLOURS = {
    **dict.fromkeys(("active", "succeeded", "online", "ok", "running", "closed", "intact"), GREEN),
    **dict.fromkeys(("dead", "failed", "offline", "missed", "expired", "open"), RED),
    **dict.fromkeys(
        ("paused", "auto_paused", "retry_wait", "stale", "draining", "half_open", "held"), YELLOW
    ),
    **dict.fromkeys(("queued", "scheduled", "pending"), CYAN),
    **dict.fromkeys(("cancelled", "completed", "skipped", "discarded"), DIM),
}
WIDTH_MAX = 60
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What could move the cursor of a terminal, or turn the direction of a line."""


class Column(NamedTuple):
    """A column of a table: its header, where its value is, and how it is written."""

    header: str
    path: str
    form: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Eye:
    """Who looks: when, in which zone, and whether colours are seen."""

    now: datetime
    zone: tzinfo
    colours: bool = False
    headers: bool = True


def column(text: str) -> Column:
    """`NEXT=status.next_fire_at:when` as a column."""
    header, _, rest = text.partition("=")
    path, _, form = rest.partition(":")
    return Column(header, path, form or "text")


def at(value: Any, path: str) -> Any:
    """What lies at a dotted path; `a|b` is the first of them that is there, `a~b` a full name."""
    for way in path.split("|"):
        if "~" in way:
            group, name = (at(value, part) for part in way.split("~"))
            if name is not None:
                return name if group in (None, "default") else f"{group}~{name}"
            continue
        found = value
        # A member that was picked by its path carries the path as its name.
        picked = isinstance(value, Mapping) and way in value
        for step in [way] if picked else way.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def table(rows: Sequence[Any], columns: Sequence[Column], eye: Eye) -> str:
    """Rows under their headers; the last column is never padded."""
    cells = [[cell(at(row, one.path), one.form, eye) for one in columns] for row in rows]
    lines = [[one.header for one in columns], *cells] if eye.headers else cells
    if not lines:
        return ""
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    text = []
    for number, line in enumerate(lines):
        is_header = eye.headers and number == 0
        padded = [
            _painted(value, widths[place] if place + 1 < len(line) else 0, eye, header=is_header)
            for place, value in enumerate(line)
        ]
        text.append("   ".join(padded).rstrip())
    return "\n".join(text) + "\n"


def _painted(value: str, width: int, eye: Eye, *, header: bool) -> str:
    padding = " " * max(0, width - len(value))
    if not eye.colours:
        return value + padding
    paint = BOLD if header else COLOURS.get(value)
    return (f"\x1b[{paint}m{value}\x1b[0m" if paint else value) + padding


def cell(value: Any, form: str, eye: Eye) -> str:
    """One value as a table shows it."""
    if value is None or value in ("", [], {}):
        return "-"
    written = FORMS.get(form, _plain)(value, eye)
    return clean(written) if form == "full" else shortened(clean(written))


def _plain(value: Any, eye: Eye) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_plain(inner, eye)}" for key, inner in value.items())
    if isinstance(value, list):
        return ",".join(_plain(one, eye) for one in value)
    return str(value)


def _when(value: Any, eye: Eye) -> str:
    moment = moment_of(value)
    return str(value) if moment is None else relative(moment, eye.now)


def _time(value: Any, eye: Eye) -> str:
    moment = moment_of(value)
    return str(value) if moment is None else exact(moment, eye.zone)


def _count(value: Any, _eye: Eye) -> str:
    return str(len(value)) if isinstance(value, list | Mapping) else str(value)


def _share(value: Any, _eye: Eye) -> str:
    return f"{value:.1%}" if isinstance(value, int | float) else str(value)


def _ms(value: Any, _eye: Eye) -> str:
    return milliseconds(value) if isinstance(value, int | float) else str(value)


def _seconds(value: Any, _eye: Eye) -> str:
    return span(value) if isinstance(value, int | float) else str(value)


FORMS: Mapping[str, Callable[[Any, Eye], str]] = {
    "when": _when,
    "time": _time,
    "count": _count,
    "share": _share,
    "ms": _ms,
    "seconds": _seconds,
}


def clean(text: str) -> str:
    """One line that cannot play tricks on a terminal; what others wrote is only text."""
    return CONTROL.sub(" ", text.replace("\n", " "))


def shortened(text: str) -> str:
    """Not wider than a column should be."""
    return text if len(text) <= WIDTH_MAX else f"{text[: WIDTH_MAX - 1]}…"


def sheet(value: Mapping[str, Any], eye: Eye) -> str:
    """One thing, member by member; what is empty is left out."""
    lines = list(_members(value, "", eye))
    width = max((len(name) for name, _ in lines), default=0)
    return "".join(f"{name:{width}}   {text}\n" for name, text in lines)


def _members(value: Mapping[str, Any], inside: str, eye: Eye) -> Iterable[tuple[str, str]]:
    for key, inner in value.items():
        name = f"{inside}{key}"
        if inner is None or inner in ("", [], {}):
            continue
        if isinstance(inner, Mapping):
            yield from _members(inner, f"{name}.", eye)
        elif isinstance(inner, list) and isinstance(inner[0], Mapping):
            for place, one in enumerate(inner):
                yield from _members(one, f"{name}[{place}].", eye)
        else:
            yield name, _in_full(inner, eye)


def _in_full(value: Any, eye: Eye) -> str:
    moment = moment_of(value)
    if moment is not None:
        return f"{exact(moment, eye.zone)}  ({relative(moment, eye.now)})"
    text = clean(_plain(value, eye))
    paint = COLOURS.get(text) if eye.colours else None
    return f"\x1b[{paint}m{text}\x1b[0m" if paint else text
