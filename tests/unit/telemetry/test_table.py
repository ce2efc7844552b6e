"""The table of events at the door of the room and the code name the same events."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import betimes.telemetry

SOURCE = Path(betimes.__file__).parent
ROW = re.compile(r"^\| `([\w.*]+)`", re.MULTILINE)


def names_in_the_table() -> set[str]:
    return set(ROW.findall(betimes.telemetry.__doc__ or ""))


def names_in_the_code() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for name in names_of(node):
                    yield name, str(file.relative_to(SOURCE))


def names_of(call: ast.Call) -> list[str]:
    """The literal names of `….span("x")`, `….event("x")` and `Event(name="x" if … else "y")`."""
    callee = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    if callee in {"span", "event"}:
        places: list[ast.expr] = call.args[:1]
    elif callee == "Event":
        places = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    else:
        places = []
    branches = [[p.body, p.orelse] if isinstance(p, ast.IfExp) else [p] for p in places]
    parts = [part for branch in branches for part in branch]
    return [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]


def test_every_name_in_the_code_stands_in_the_table() -> None:
    table = names_in_the_table()
    missing = {
        (name, file)
        for name, file in names_in_the_code()
        if not any(fnmatch(name, row) for row in table)
    }
    assert missing == set()


def test_every_name_in_the_table_is_used() -> None:
    used = {name for name, _ in names_in_the_code()}
    unused = {row for row in names_in_the_table() if not any(fnmatch(name, row) for name in used)}
    assert unused == set()
