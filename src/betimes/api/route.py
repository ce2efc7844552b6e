"""The table of routes: what each operation is, and how a path leads to one.

A route says everything about its operation: who may call it, what it reads, what it answers. The
router, the checks before a handler and the OpenAPI document are all made from it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from enum import Enum, StrEnum
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from betimes.api.call import Call, Reply
from betimes.wire.base import Asked, Shown

Handler = Callable[[Call[Any, Any]], Awaitable[Reply]]

BODY_BYTES_MAX = 1 << 20
BATCH_BYTES_MAX = 5 << 20
SEGMENT_LENGTH_MAX = 512
FIELDS, VALIDATE_ONLY = "fields", "validate_only"
MAKING = (".create", ".create_many", ".invite", ".start")


class NoQuery(Asked):
    """No parameters."""


class Load(StrEnum):
    """What a request is worth when there is no room, most first; vital ones are never refused."""

    FREE = "free"
    VITAL = "vital"
    WRITE = "write"
    CREATE = "create"
    READ = "read"
    AGGREGATE = "aggregate"


class Keyed(Enum):
    """Whether an operation takes an Idempotency-Key."""

    NO = 0
    OPTIONAL = 1
    REQUIRED = 2


class Policy(StrEnum):
    """Which bucket a request is charged to."""

    DEFAULT = "default"
    CREATE = "create"
    BULK = "bulk"
    LEASE = "lease"
    STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """An operation that will go: since when that is known, when it goes, where to read on."""

    deprecated_at: datetime
    sunset_at: datetime
    see: str

    def headers(self) -> dict[str, str]:
        """As RFC 9745 and RFC 8594 tell it."""
        return {
            "Deprecation": f"@{int(self.deprecated_at.timestamp())}",
            "Sunset": format_datetime(self.sunset_at, usegmt=True),
            "Link": f'<{self.see}>; rel="deprecation"',
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One operation; each is only equal to itself."""

    method: str
    path: str
    name: str
    says: str
    handler: Handler
    scope: str | None
    answers: Mapping[int, Any]
    query: type[Asked] = NoQuery
    body: Any = None
    body_optional: bool = False
    media: str = "application/json"
    answer_media: str = "application/json"
    or_media: tuple[str, ...] = ()
    """Further forms of its answer, which the Accept header chooses."""
    keyed: Keyed = Keyed.NO
    load: Load = Load.READ
    policy: Policy = Policy.DEFAULT
    body_max: int = BODY_BYTES_MAX
    problems: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    seconds: float = 30.0
    sends: Mapping[str, str] = field(default_factory=dict)
    """Header fields it reads, with what they say."""
    example: Any = None
    """A body that would be accepted, for the document."""
    retired: Retirement | None = None
    item: Any = None
    """What the items of a batch are, where each of them may stand for itself."""
    unpacks: bool = False
    """Whether its body may come packed with gzip, within the same bound once unpacked."""
    waits: bool = False
    """Whether it may wait for long, and therefore does not count as busy."""
    by_lease: bool = False
    """Whether the token in its path may stand for a key."""
    parameters: tuple[str, ...] = field(init=False)
    """The names in its path."""
    offers: tuple[str, ...] = field(init=False)
    """The forms of its answer, the usual one first; none where it answers without content."""
    selects: bool = field(init=False)
    """Whether `fields` is taken and applied outside the handler."""
    selectable: frozenset[str] = field(init=False)
    """The members that `fields` may name; empty where the shape does not tell."""
    tries: bool = field(init=False)
    """Whether `validate_only` is taken and applied where acts are done."""

    def __post_init__(self) -> None:
        names = (part[1:-1] for part in self.path.split("/") if part.startswith("{"))
        object.__setattr__(self, "parameters", tuple(names))
        forms = (self.answer_media.partition(";")[0], *self.or_media)
        has_content = any(kind is not None for kind in self.answers.values())
        object.__setattr__(self, "offers", forms if has_content else ())
        known = {one.encode_name for one in msgspec.structs.fields(self.query)}
        shown = _shape(self.answers.get(200))
        selects = self.method == "GET" and FIELDS not in known and issubclass(shown, Shown)
        object.__setattr__(self, "selects", selects and not self.is_public)
        object.__setattr__(self, "selectable", _selectable(self.answers.get(200)))
        writes = self.method in ("PUT", "PATCH") or self.name.endswith(MAKING)
        tries = writes and VALIDATE_ONLY not in known and self.body not in (None, bytes)
        object.__setattr__(self, "tries", tries and not self.is_public)

    @property
    def tag(self) -> str:
        """The noun of the operation."""
        return self.name.partition(".")[0]

    @property
    def is_public(self) -> bool:
        """Whether no key is needed."""
        return self.scope is None

    @property
    def success(self) -> int:
        """The plainest status it documents."""
        return min(self.answers)


def _shape(kind: Any) -> type:
    """The class of an answer, also of a generic one."""
    found = getattr(kind, "__origin__", kind)
    return found if isinstance(found, type) else object


def _selectable(kind: Any) -> frozenset[str]:
    """The members of an answer; of a list those of its items."""
    arguments: tuple[Any, ...] = getattr(kind, "__args__", ())
    shown = _shape(kind)
    if not issubclass(shown, msgspec.Struct):
        return frozenset()
    members = {one.encode_name: one.type for one in msgspec.structs.fields(shown)}
    if "items" in members:
        inner = arguments or getattr(members["items"], "__args__", ())
        return _selectable(inner[0]) if inner else frozenset()
    return frozenset(members)


@dataclass(slots=True)
class Node:
    """One segment of the tree of paths."""

    literals: dict[str, "Node"] = field(default_factory=dict)
    any: "Node | None" = None
    routes: dict[str, Route] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """Where a path leads: the routes by method, and what its places hold."""

    routes: Mapping[str, Route]
    values: tuple[str, ...]


class Router:
    """Finds the routes of a path; literal segments win over places."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = Node()
        self._static: dict[str, Found] = {}
        for route in routes:
            self._add(route)

    def find(self, path: str) -> Found | None:
        """The routes of a raw path, or None."""
        found = self._static.get(path)
        return found if found is not None else self._walk(path)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in route.path.strip("/").split("/"):
            if segment.startswith("{"):
                node.any = node.any or Node()
                node = node.any
            else:
                node = node.literals.setdefault(segment, Node())
        if route.method in node.routes:
            raise ValueError(f"two routes for {route.method} {route.path}")
        node.routes[route.method] = route
        if not route.parameters:
            self._static[route.path] = Found(node.routes, ())

    def _walk(self, path: str) -> Found | None:
        node: Node = self._root
        values: list[str] = []
        for segment in path[1:].split("/"):
            step = node.literals.get(segment)
            if step is None:
                step = node.any
                if step is None or not segment or len(segment) > SEGMENT_LENGTH_MAX:
                    return None
                try:
                    values.append(unquote(segment, errors="strict"))
                except UnicodeDecodeError:
                    return None
            node = step
        return Found(node.routes, tuple(values)) if node.routes else None


def reason_of(status: int) -> str:
    """The standard phrase of a status."""
    return HTTPStatus(status).phrase
