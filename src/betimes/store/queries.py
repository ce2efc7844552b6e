"""SQL lives in `.sql` files by noun; this loads and checks them, so a bad file fails at import.

Each statement begins with a header:

    -- name: renew_shards :many
    -- One sentence that says what it does.
    -- Index: shards_pkey              (optional: what EXPLAIN must show; several with commas)
    -- Guard: epoch and owner          (optional: what a stale holder meets)
    -- Scatter: why                    (optional: touches several shards, and may)
    -- Published: why                  (makes parcels: why no publisher makes one for the same runs)
    -- Returns: shard int2, epoch int8 (what comes back; checked against the database by a test)

`:name` is a parameter; the driver's `$1` is made here, in the order of first appearance.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

from betimes.domain.errors import Bug
from betimes.store.pool import Connection

KINDS = ("one", "maybe", "many", "exec")
NOTES = ("Index", "Guard", "Scatter", "Published", "Returns")

_HEADER = re.compile(r"^-- name: (\w+) :(\w+)$", re.MULTILINE)
_NOTE = re.compile(r"^-- ([A-Z]\w*): (.+)$")
_COMMENT = re.compile(r"--.*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)\b")  # :name, but never ::cast


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement."""

    name: str
    kind: str
    sentence: str
    text: str
    parameters: tuple[str, ...]
    indexes: tuple[str, ...]
    guard: str
    scatter: str
    published: str
    returns: tuple[tuple[str, str], ...]

    def arguments(self, given: Mapping[str, Any]) -> list[Any]:
        """The values in the driver's order; a missing or extra one never reaches the network."""
        if given.keys() != set(self.parameters):
            missing = sorted(set(self.parameters) - given.keys())
            extra = sorted(given.keys() - set(self.parameters))
            raise Bug(f"statement {self.name}: missing {missing}, not known {extra}")
        return [given[name] for name in self.parameters]

    async def fetch(self, connection: Connection, **given: Any) -> list[Any]:
        """Its rows, inside a transaction of the caller's."""
        return await connection.fetch(self.text, *self.arguments(given))

    async def execute(self, connection: Connection, **given: Any) -> None:
        """Run it for its effect, inside a transaction of the caller's."""
        await connection.execute(self.text, *self.arguments(given))

    async def count(self, connection: Connection, **given: Any) -> int:
        """Run it for its effect; how many rows it touched."""
        status = await connection.execute(self.text, *self.arguments(given))
        return int(status.rpartition(" ")[2])


def parse(source: str, *, file: str = "<text>") -> dict[str, Query]:
    """Split one .sql file into its named statements."""
    before, *chunks = _HEADER.split(source)
    if _COMMENT.sub("", before).strip():
        raise Bug(f"{file}: there is SQL before the first `-- name:` line")
    queries: dict[str, Query] = {}
    for name, kind, body in zip(chunks[0::3], chunks[1::3], chunks[2::3], strict=True):
        if name in queries:
            raise Bug(f"{file}: the statement {name} stands there twice")
        queries[name] = _query(name, kind, body, file=file)
    return queries


def _query(name: str, kind: str, body: str, *, file: str) -> Query:
    if kind not in KINDS:
        raise Bug(f"{file}: {name} is :{kind}, expected one of {', '.join(KINDS)}")
    sentence, notes = _header(body)
    if unknown := notes.keys() - set(NOTES):
        raise Bug(f"{file}: {name} has a note {min(unknown)}, expected {', '.join(NOTES)}")
    if not sentence:
        raise Bug(f"{file}: {name} has no sentence that says what it does")
    text, parameters = _number(_COMMENT.sub("", body).strip().rstrip(";"))
    if not text or ";" in text:
        raise Bug(f"{file}: {name} must be one statement")
    returns = tuple(_column(part, file=file) for part in _parts(notes.get("Returns", "")))
    if (kind == "exec") == bool(returns):
        raise Bug(f"{file}: {name} is :{kind}, so a `-- Returns:` line must say what comes back")
    return Query(
        name=name,
        kind=kind,
        sentence=sentence,
        text=text,
        parameters=parameters,
        indexes=tuple(_parts(notes.get("Index", ""))),
        guard=notes.get("Guard", ""),
        scatter=notes.get("Scatter", ""),
        published=notes.get("Published", ""),
        returns=returns,
    )


def _header(body: str) -> tuple[str, dict[str, str]]:
    sentence: list[str] = []
    notes: dict[str, str] = {}
    for line in body.lstrip("\n").splitlines():
        if not line.startswith("--"):
            break
        if note := _NOTE.match(line):
            notes[note[1]] = f"{notes[note[1]]}, {note[2]}" if note[1] in notes else note[2]
        elif not notes:
            sentence.append(line.removeprefix("--").strip())
    return " ".join(sentence), notes


def _number(text: str) -> tuple[str, tuple[str, ...]]:
    order: dict[str, int] = {}

    def place(match: re.Match[str]) -> str:
        return f"${order.setdefault(match[1], len(order) + 1)}"

    numbered = _PARAMETER.sub(place, text)
    return numbered, tuple(order)


def _parts(note: str) -> list[str]:
    return [part.strip() for part in note.split(",") if part.strip()]


def _column(part: str, *, file: str) -> tuple[str, str]:
    name, _, kind = part.partition(" ")
    if not kind:
        raise Bug(f"{file}: expected `name type` in Returns, got {part!r}")
    return name, kind


@cache
def load(noun: LiteralString) -> dict[str, Query]:
    """The statements of one noun."""
    file = files("betimes.store") / "sql" / f"{noun}.sql"
    return parse(file.read_text(encoding="utf-8"), file=f"{noun}.sql")


def nouns() -> list[str]:
    """Every file of statements there is."""
    folder = files("betimes.store") / "sql"
    return sorted(file.name.removesuffix(".sql") for file in folder.iterdir())
