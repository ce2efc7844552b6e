"""What a handler is given, and what it gives back."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from betimes.domain.ids import TenantId
from betimes.domain.trace import read_traceparent, read_tracestate
from betimes.ops.idempotency import IdempotencyKey
from betimes.ops.keys import Caller

if TYPE_CHECKING:
    from betimes.api.cursor import Leaves
    from betimes.api.problem import Trouble
    from betimes.api.route import Route
    from betimes.api.service import Service

Q = TypeVar("Q")
B = TypeVar("B")
T = TypeVar("T")

JSON = "application/json"
encode = msgspec.json.Encoder().encode


@dataclass(slots=True, kw_only=True)
class Request:
    """The request as it came in, apart from its body."""

    method: str
    path: str
    query_string: bytes
    headers: Mapping[bytes, bytes]
    doubled: frozenset[bytes]
    address: str
    id: str
    server: tuple[str, int] | None = None
    """The address it came to: of a socket of ours, not what it says about itself."""
    told: Mapping[str, str] = field(default_factory=dict)
    """What every answer to it tells, whatever becomes of it: the rates it is charged to."""

    def header(self, name: bytes) -> str | None:
        """A header field by its lower-case name."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def trace(self) -> dict[str, str]:
        """Where the caller is in its own trace, if it says so, as options keep it."""
        parent = read_traceparent(self.header(b"traceparent"))
        if parent is None:
            return {}
        state = read_tracestate(self.header(b"tracestate"))
        return {"trace": parent} | ({"tracestate": state} if state else {})


@dataclass(slots=True, kw_only=True)
class Call(Generic[Q, B]):
    """One request on its way to its handler: known, allowed, read and checked."""

    service: "Service"
    route: "Route"
    request: Request
    caller: Caller
    path: Mapping[str, str]
    query: Q
    body: B
    raw: bytes = b""
    key: IdempotencyKey | None = None
    notes: dict[str, str] = field(default_factory=dict)
    only_try: bool = False
    """Whether all is checked and nothing kept: `validate_only`."""
    leaves: "Leaves"
    """Cursors of lists that are read in one direction."""
    unread: Mapping[int, "Trouble"] = field(default_factory=dict)
    """Items of a batch that could not be read, by their places; the body has the others."""
    fields: Sequence[str] = ()
    """The members to show of a reading, where the handler leaves that to others."""

    def placed(self, items: Iterable[T]) -> Iterator[tuple[int, T]]:
        """Items of the body with the places they had among all that were sent."""
        places = (place for place in count() if place not in self.unread)
        return zip(places, items, strict=False)

    @property
    def tenant(self) -> TenantId:
        """Whose request it is."""
        return self.caller.tenant

    @property
    def actor(self) -> dict[str, str]:
        """Who asks, for the audit."""
        return {"type": self.caller.via, "id": self.caller.key, "ip": self.request.address}


@dataclass(slots=True, kw_only=True)
class Stream:
    """An answer that goes on, and what is let go of when it ends, also before it has begun."""

    pieces: AsyncGenerator[bytes, None]
    let_go: Callable[[], None]

    async def aclose(self) -> None:
        """End it."""
        try:
            await self.pieces.aclose()
        finally:
            self.let_go()


@dataclass(slots=True, kw_only=True)
class Reply:
    """An answer: a value to be encoded, or bytes as they are."""

    status: int = 200
    value: Any = None
    content: bytes | None = None
    media: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    cacheable: bool = False
    """Whether it stays the same as long as its tag does; then If-None-Match may answer it."""

    def body(self) -> bytes:
        """The bytes to send."""
        if self.content is not None:
            return self.content
        return b"" if self.value is None else encode(self.value)
