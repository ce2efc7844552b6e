"""Output forms: one answer as a table, as JSON, YAML, lines of JSON, names or CSV."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from betimes.cli.looks import Column, Eye, at, cell, sheet, table

RISKY = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula."""
NAMES = ("slug", "id", "name", "run_id", "shard", "origin", "key", "fingerprint", "number")
LISTS = ("items", "occurrences", "buckets", "points", "revisions")


class Look(NamedTuple):
    """How the answers of a command are shown as tables; `noun` prefixes names."""

    columns: tuple[Column, ...] = ()
    wide: tuple[Column, ...] = ()
    noun: str = ""


class Answer(NamedTuple):
    """What came back: `rows` when it is a list, else `value`."""

    value: Any
    rows: list[Any] | None = None


def answer_of(value: Any) -> Answer:
    """An answer with its rows found."""
    if isinstance(value, list):
        return Answer(value, value)
    if isinstance(value, Mapping):
        for name in LISTS:
            if isinstance(value.get(name), list):
                return Answer(value, value[name])
    return Answer(value)


def picked(answer: Answer, *, query: str | None, fields: str | None) -> Answer:
    """What a JMESPath or a list of members leaves of an answer."""
    if fields is not None:
        answer = _selected(answer, [name.strip() for name in fields.split(",") if name.strip()])
    if query is not None:
        subject = answer.rows if answer.rows is not None else answer.value
        answer = answer_of(_searched(query, subject))
    return answer


def _selected(answer: Answer, names: Sequence[str]) -> Answer:
    def only(row: Any) -> Any:
        return {name: at(row, name) for name in names} if isinstance(row, Mapping) else row

    if answer.rows is not None:
        rows = [only(row) for row in answer.rows]
        return Answer(rows, rows)
    return Answer(only(answer.value))


def _searched(query: str, subject: Any) -> Any:
    import jmespath  # noqa: PLC0415 -- only who asks for it pays for it
    from jmespath.exceptions import JMESPathError  # noqa: PLC0415 -- as above

    try:
        return jmespath.search(query, subject)
    except JMESPathError as fault:
        raise click.BadParameter(f"--query: expected a JMESPath, got {fault}") from None


def text_of(answer: Answer, form: str, look: Look, eye: Eye, *, chosen: bool = False) -> str:
    """An answer in a form; `chosen` says that members were picked, so the columns are theirs."""
    match form:
        case "json":
            return json.dumps(_whole(answer), indent=2, ensure_ascii=False) + "\n"
        case "jsonl":
            return "".join(
                json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
                for row in _rows(answer)
            )
        case "yaml":
            return yaml_text(_whole(answer))
        case "name":
            return "".join(f"{_name(row, look)}\n" for row in _rows(answer))
        case "csv":
            return _csv(_rows(answer), _columns(answer, look, "wide", chosen=chosen), eye)
        case _:
            return _for_people(answer, form, look, eye, chosen=chosen)


def yaml_text(value: Any) -> str:
    """YAML as people write it."""
    import yaml  # noqa: PLC0415 -- only who asks for it pays for it

    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return text.removesuffix("...\n")


def _whole(answer: Answer) -> Any:
    return answer.value if answer.rows is None else answer.rows


def _rows(answer: Answer) -> list[Any]:
    return answer.rows if answer.rows is not None else [answer.value]


def _name(row: Any, look: Look) -> str:
    if not isinstance(row, Mapping):
        return str(row)
    found = at(row, "group~name") if look.noun == "job" else None
    if found is None:
        found = next((row[key] for key in NAMES if row.get(key) is not None), "-")
    return f"{look.noun}/{found}" if look.noun else str(found)


def _columns(answer: Answer, look: Look, form: str, *, chosen: bool) -> tuple[Column, ...]:
    if look.columns and not chosen:
        return look.columns + (look.wide if form == "wide" else ())
    names: dict[str, None] = {}
    for row in _rows(answer):
        if isinstance(row, Mapping):
            names.update(dict.fromkeys(row))
    return tuple(Column(name.upper(), name) for name in names)


def _csv(rows: list[Any], columns: Sequence[Column], eye: Eye) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if eye.headers:
        writer.writerow([_member(one.path) for one in columns] or ["value"])
    for row in rows:
        values = [at(row, one.path) for one in columns] if columns else [row]
        writer.writerow([_harmless(value) for value in values])
    return text.getvalue()


def _member(path: str) -> str:
    """The name of a column for programs."""
    return path.partition("|")[0].rpartition("~")[2]


def _harmless(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(RISKY) else text


def _for_people(answer: Answer, form: str, look: Look, eye: Eye, *, chosen: bool) -> str:
    if answer.rows is None:
        if isinstance(answer.value, Mapping):
            return sheet(answer.value, eye)
        return "" if answer.value is None else f"{cell(answer.value, 'full', eye)}\n"
    columns = _columns(answer, look, form, chosen=chosen)
    if not columns:
        return "".join(f"{cell(row, 'full', eye)}\n" for row in answer.rows)
    return table(answer.rows, columns, eye)
