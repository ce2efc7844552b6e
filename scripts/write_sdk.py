"""Write the generated parts of the client library from the table of routes.

    errors.py       one class for each error code
    operations.py   the table of operations
    resources.py    both clients' methods, the blocking ones and their awaitable twins

The two clients come from one table, so they cannot drift; a test writes it again and compares.
"""

import keyword
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from betimes.api.codes import CODES
from betimes.api.route import Keyed, NoQuery, Route
from betimes.api.routes import ROUTES
from betimes.wire.base import Page

SDK = Path(__file__).resolve().parent.parent / "src" / "betimes" / "sdk"
NOTE = "# Written by scripts/write_sdk.py; do not edit."
STREAMS = "text/event-stream"
NOT_FOR_CLIENTS = frozenset({"meta.reference", "meta.error"})
ROOT_GROUP = "meta"


def main() -> int:
    """Write all files and format them."""
    for name, text in files().items():
        (SDK / name).write_text(formatted(text, name))
        print(f"wrote {name}")
    return 0


def formatted(text: str, name: str) -> str:
    """As the formatter of the project writes it."""
    ruff = [sys.executable, "-m", "ruff"]
    place = ["--stdin-filename", str(SDK / name), "-"]
    for step in (["check", "--fix", "--quiet", "--exit-zero"], ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *step, *place], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return text


def files() -> dict[str, str]:
    """Every generated file by its name."""
    return {"errors.py": errors(), "operations.py": operations(), "resources.py": resources()}


# -- errors


def errors() -> str:
    """The error classes."""
    lines = [
        '"""Errors of the API as classes: one for each code, so that `except` can be precise.',
        "",
        "Long because it is generated: one class for each code.",
        '"""',
        "",
        NOTE,
        "",
        "from betimes.sdk.failures import ApiError, ClientError, Unreachable",
        "from betimes.wire.problem import Problem",
        "",
    ]
    for code in CODES.values():
        lines += [
            "",
            f"class {class_name(code.code)}(ApiError):",
            f'    """{_says(code.says)}"""',
            "",
        ]
    lines += ["", "BY_CODE: dict[str, type[ApiError]] = {"]
    lines += [f'    "{code}": {class_name(code)},' for code in CODES]
    lines += [
        "}",
        "",
        "",
        "def error_of(problem: Problem, *, retry_after: float | None) -> ApiError:",
        '    """The error that a problem document tells."""',
        "    kind = BY_CODE.get(problem.code, ApiError)",
        "    return kind(problem, retry_after=retry_after)",
        "",
        "",
        "__all__ = [",
    ]
    names = sorted({"ApiError", "ClientError", "Unreachable", "error_of", *map(class_name, CODES)})
    lines += [f'    "{name}",' for name in names]
    return "\n".join([*lines, "]", ""])


def class_name(code: str) -> str:
    """`lease_lost` is `LeaseLost`."""
    return "".join(part.capitalize() for part in code.split("_"))


def _says(text: str) -> str:
    first = text.replace("\\", "\\\\").replace('"', "'")
    return textwrap.shorten(first, 84, placeholder=" ...")


# -- operations


def served() -> list[Route]:
    """Routes that clients call."""
    return [route for route in ROUTES if route.name not in NOT_FOR_CLIENTS]


def operations() -> str:
    """The table of operations."""
    used = Names()
    rows = []
    for route in served():
        answers = ", ".join(f"{status}: {used.runtime(kind)}" for status, kind in successes(route))
        parts = [
            f'name="{route.name}"',
            f'method="{route.method}"',
            f'path="{route.path}"',
            f"answers={{{answers}}}",
        ]
        if route.keyed is not Keyed.NO:
            parts.append("keyed=True")
        if route.media != "application/json":
            parts.append(f'media="{route.media}"')
        if route.answer_media != "application/json":
            parts.append(f'accepts="{route.answer_media}"')
        rows.append((constant(route), parts))
    lines = [
        '"""The table of operations, as both clients use it.',
        "",
        "Long because it is generated: one entry for each operation.",
        '"""',
        "",
        NOTE,
        "",
        *used.imports(),
        "from typing import Any",
        "",
        "from betimes.sdk.operation import Operation",
        "",
    ]
    for name, parts in rows:
        lines += [f"{name} = Operation(", *(f"    {part}," for part in parts), ")"]
    lines += ["", "OPERATIONS = ("]
    lines += [f"    {name}," for name, _ in rows]
    return "\n".join([*lines, ")", ""])


def constant(route: Route) -> str:
    """`jobs.create` is `JOBS_CREATE`."""
    return route.name.upper().replace(".", "_")


def successes(route: Route) -> Iterator[tuple[int, Any]]:
    """The answers that mean success."""
    for status, kind in route.answers.items():
        if status < 300:  # noqa: PLR2004 -- HTTP
            yield status, kind


# -- types as source


class Names:
    """Types as they are written in source, and what must be imported for them."""

    def __init__(self) -> None:
        self._modules: set[str] = set()

    def imports(self) -> list[str]:
        """Lines that import what was named."""
        return [f"import {name}" for name in sorted(self._modules)]

    def runtime(self, kind: Any) -> str:
        """A type as a value that is there when the module is loaded."""
        return "None" if kind is None else self.written(kind)

    def written(self, kind: Any) -> str:
        """A type as an annotation; limits of values are the server's business."""
        if kind is None or kind is type(None):
            return "None"
        if kind is msgspec.UnsetType:
            return "Unset"
        if kind is Any:
            return "Any"
        origin = typing.get_origin(kind)
        if origin is typing.Annotated:
            return self.written(typing.get_args(kind)[0])
        if origin is typing.Literal:
            return f"Literal[{', '.join(repr(one) for one in typing.get_args(kind))}]"
        if origin in (typing.Union, types.UnionType):
            return " | ".join(dict.fromkeys(self.written(one) for one in typing.get_args(kind)))
        if origin is not None:
            inner = ", ".join(self.written(one) for one in typing.get_args(kind))
            return f"{self._name(origin)}[{inner}]"
        return self._name(kind)

    def given(self, kind: Any) -> str:
        """The same for what callers give: what is written as an object may be a plain one."""
        if not _has_struct(kind):
            return self.written(kind)
        origin = typing.get_origin(kind)
        self._modules.add("collections.abc")
        if origin is typing.Annotated:
            return self.given(typing.get_args(kind)[0])
        if origin in (typing.Union, types.UnionType):
            return " | ".join(_once(self.given(one) for one in typing.get_args(kind)))
        if origin is list:
            # Not list, which would refuse a list of one of the kinds.
            (inner,) = typing.get_args(kind)
            return f"collections.abc.Sequence[{self.given(inner)}]"
        if origin is not None:
            return self.written(kind)
        return f"{self._name(kind)} | collections.abc.Mapping[str, Any]"

    def _name(self, kind: Any) -> str:
        if kind is list:
            # Groups have a method of that name.
            self._modules.add("builtins")
            return "builtins.list"
        if kind.__module__ == "builtins":
            return str(kind.__name__)
        self._modules.add(kind.__module__)
        return f"{kind.__module__}.{kind.__qualname__}"


def _has_struct(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return True
    return any(_has_struct(one) for one in typing.get_args(kind))


def _once(texts: Iterable[str]) -> list[str]:
    """The parts of unions, each once."""
    return list(dict.fromkeys(part for text in texts for part in text.split(" | ")))


# -- resources


def resources() -> str:
    """Both clients' methods."""
    used = Names()
    groups: dict[str, list[Route]] = {}
    for route in served():
        groups.setdefault(route.name.partition(".")[0], []).append(route)
    body: list[str] = []
    for sync in (True, False):
        for group, routes in groups.items():
            body += class_of(group, routes, used, sync=sync)
        body += root_of(groups, sync=sync)
    lines = [
        '"""Every operation as a method, for both clients.',
        "",
        "Long because it is generated: one method for each operation and client.",
        '"""',
        "",
        NOTE,
        "# ruff: noqa: A002, ASYNC109, E501 -- as wide as the API",
        "",
        "from __future__ import annotations",
        "",
        *used.imports(),
        "from typing import Any, Literal",
        "",
        "from betimes.sdk import operations as table",
        "from betimes.sdk.calling import UNSET, AsyncCaller, AsyncPages, Caller, Pages, Unset",
        "",
        *body,
    ]
    return "\n".join(lines)


def class_of(group: str, routes: Iterable[Route], used: Names, *, sync: bool) -> list[str]:
    """One group of operations."""
    name = group_class(group, sync=sync)
    caller = "Caller" if sync else "AsyncCaller"
    lines = ["", f"class {name}:", f'    """Operations of {group}."""', ""]
    lines += [
        f"    def __init__(self, caller: {caller}) -> None:",
        "        self._caller = caller",
        "",
    ]
    for route in routes:
        if route.answer_media != STREAMS:
            lines += method_of(route, used, sync=sync)
    return lines


def root_of(groups: Iterable[str], *, sync: bool) -> list[str]:
    """All groups together."""
    caller = "Caller" if sync else "AsyncCaller"
    name, base = ("Resources", "Meta") if sync else ("AsyncResources", "AsyncMeta")
    lines = ["", f"class {name}({base}):", '    """Every group of operations."""', ""]
    lines += [
        f"    def __init__(self, caller: {caller}) -> None:",
        "        super().__init__(caller)",
    ]
    lines += [
        f"        self.{safe(group)} = {group_class(group, sync=sync)}(caller)"
        for group in groups
        if group != ROOT_GROUP
    ]
    return [*lines, ""]


def group_class(group: str, *, sync: bool) -> str:
    """`dead_letters` is `DeadLetters`, and `AsyncDeadLetters` for the other client."""
    return ("" if sync else "Async") + class_name(group)


def method_of(route: Route, used: Names, *, sync: bool) -> list[str]:
    """One operation as a method."""
    pages = item_of(route)
    verb = safe(route.name.partition(".")[2])
    positional = [f"{safe(name)}: str" for name in route.parameters]
    query = [] if route.query is NoQuery else list(msgspec.structs.fields(route.query))
    keywords, body = body_of(route, used)
    keywords += [keyword_of(one, used) for one in query if pages is None or one.name != "cursor"]
    edits = route.method in ("PUT", "PATCH", "DELETE")
    if edits or (route.name.startswith("jobs.") and route.method == "POST"):
        keywords.append("if_match: str | None = None")
    if route.keyed is not Keyed.NO:
        keywords.append("idempotency_key: str | None = None")
    keywords.append("request_timeout: float | None = None")
    answer = answer_of(route, used, pages=pages, sync=sync)
    awaitable = not sync and pages is None
    head = f"    {'async ' if awaitable else ''}def {verb}("
    lines = [head, "        self,", *(f"        {one}," for one in positional)]
    lines += [
        "        *,",
        *(f"        {one}," for one in sorted(keywords, key=lambda one: "=" in one)),
    ]
    lines += [f"    ) -> {answer}:", f'        """{route.says}"""']
    call = "pages" if pages is not None else "call"
    given = [f"table.{constant(route)}"]
    if positional:
        inner = ", ".join(f'"{name}": {safe(name)}' for name in route.parameters)
        given.append(f"path={{{inner}}}")
    if query:
        inner = ", ".join(
            f'"{one.encode_name}": {safe(one.name)}'
            for one in query
            if pages is None or one.name != "cursor"
        )
        given.append(f"query={{{inner}}}")
    if body:
        given.append(f"body={body}")
    given += [
        f"{option}={option}"
        for option in ("if_match", "idempotency_key")
        if any(one.startswith(f"{option}:") for one in keywords)
    ]
    given.append("timeout=request_timeout")
    start = "await " if awaitable else ""
    lines += [f"        answer: {answer} = {start}self._caller.{call}("]
    lines += [*(f"            {one}," for one in given), "        )", "        return answer", ""]
    return lines


def body_of(route: Route, used: Names) -> tuple[list[str], str]:
    """The keywords that make a body, and the body made of them."""
    if route.body is None:
        return [], ""
    if route.body is bytes:
        return ["content: bytes"], "content"
    if not (isinstance(route.body, type) and issubclass(route.body, msgspec.Struct)):
        return [f"changes: {used.written(route.body)}"], "changes"
    fields = [
        one for one in msgspec.structs.fields(route.body) if one.encode_name != "idempotencyKey"
    ]
    inner = ", ".join(f'"{one.encode_name}": {safe(one.name)}' for one in fields)
    return [keyword_of(one, used) for one in fields], f"{{{inner}}}"


def keyword_of(one: Any, used: Names) -> str:
    """A member as a keyword; what is not said is not sent."""
    kind = used.given(one.type)
    if one.required:
        return f"{safe(one.name)}: {kind}"
    if "Unset" not in kind.split(" | "):
        kind = f"{kind} | Unset"
    return f"{safe(one.name)}: {kind} = UNSET"


def item_of(route: Route) -> Any:
    """What a page of a list holds; None when the answer is no page."""
    for _, kind in successes(route):
        if typing.get_origin(kind) is Page:
            return typing.get_args(kind)[0]
    return None


def answer_of(route: Route, used: Names, *, pages: Any, sync: bool) -> str:
    """The annotation of what comes back."""
    if pages is not None:
        return f"{'Pages' if sync else 'AsyncPages'}[{used.written(pages)}]"
    return " | ".join(dict.fromkeys(used.written(kind) for _, kind in successes(route)))


def safe(name: str) -> str:
    """A name that Python accepts."""
    return f"{name}_" if keyword.iskeyword(name) else name


if __name__ == "__main__":
    sys.exit(main())
