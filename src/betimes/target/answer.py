"""What is asked of a target and what comes back, as values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from betimes.target.address import AddressPolicy
from betimes.target.url import TargetUrl

READ_BYTES_MAX = 1 << 20
"""Most bytes of a body that are read; the rest is cut off with its connection."""
KEPT_BYTES_MAX = 16_384
"""Most bytes of a body that are kept."""
HEADER_BYTES_MAX = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds: `total` covers everything, `idle` the silence between two bytes of an answer."""

    connect: float = 5.0
    total: float = 30.0
    idle: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Certificates in PEM: whom to believe besides the usual ones, and who we are."""

    authorities: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, complete: nothing is looked up later but the address of its host."""

    tenant: UUID
    url: TargetUrl
    method: str
    headers: list[str] = field(repr=False)
    body: bytes | None = field(repr=False)
    patience: Patience
    addresses: AddressPolicy
    tls: Tls | None = None
    kept_max: int = KEPT_BYTES_MAX
    """Most bytes of the answer that are kept; what it may send is a megabyte, or as many."""
    private: frozenset[str] = frozenset()
    """Names of headers that are for this origin and no other."""
    may_go: Callable[[], bool] | None = field(default=None, repr=False)
    """Asked when the connection stands and nothing is sent yet: whoever sends under a lease looks
    at it then, however long the way there was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Milliseconds from the beginning to each step; None for a step that did not happen."""

    dns: float | None = None
    connect: float | None = None
    tls: float | None = None
    first_byte: float | None = None
    total: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A target has answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    truncated: bool
    address: str
    reused: bool
    timings: Timings

    def header(self, name: str) -> str | None:
        """The first header of a name, in lower case."""
        return next((value for key, value in self.headers if key == name), None)


class Trouble(Enum):
    """Why there is no answer."""

    REFUSED = "TargetRefused"
    """By our own rules; nothing was sent anywhere."""
    RESOLVE = "TargetNotFound"
    CONNECT = "TargetUnreachable"
    TLS = "TargetNotTrusted"
    TIMEOUT = "TargetTimeout"
    BROKEN = "TargetBroken"
    """The connection ended or the answer made no sense."""
    REDIRECT = "TargetRedirected"
    UNSENT = "LeaseLost"
    """Whoever wanted it sent may not send it any more; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """A target has not answered."""

    trouble: Trouble
    detail: str
    address: str = ""
    timings: Timings = field(default_factory=Timings)
