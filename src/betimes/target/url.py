"""Reading the address of a target, and refusing what two readers could read differently.

The reader is stricter than a browser: it takes one form of each part and refuses the rest with a
sentence. What passes is rebuilt from its parts, so that the client is never given text that was
written by somebody else and read by us in another way.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from urllib.parse import quote

from betimes.domain.errors import BadTarget
from betimes.target.address import Address, AddressPolicy, is_loopback, read_address
from betimes.target.redact import Redaction

URL_CHARACTERS_MAX = 8_192
HOST_CHARACTERS_MAX = 253
LABEL_CHARACTERS_MAX = 63
PORT_MAX = 65_535
DEFAULT_PORTS = {"http": 80, "https": 443}

PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.DOTALL,
)
FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\\ud800-\udfff]")
LABEL = re.compile(r"(?!-)[a-z0-9_-]+(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
KEPT = "%/:@!$&'()*+,;=~-._?[]"
"""Characters of a path or query that stay as they are; the rest is percent-encoded."""

PRIVATE_SUFFIXES = (
    "localhost",
    "internal",
    "local",
    "localdomain",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "svc",
    "onion",
)
"""Names that mean something inside a network only, metadata services among them."""


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPolicy:
    """What may be asked for at all; `names` are private names that are allowed on purpose."""

    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    plain_http: bool = False
    ports: tuple[PortRange, ...] = (PortRange(80, 80), PortRange(443, 443), PortRange(8000, 9999))
    names: frozenset[str] = field(default_factory=frozenset)
    redaction: Redaction = field(default_factory=Redaction)
    """What evidence leaves out, whatever a target says."""

    def allows_port(self, port: int) -> bool:
        """Whether the port is one of those that may be called."""
        return any(one.first <= port <= one.last for one in self.ports)


@dataclass(frozen=True, slots=True)
class TargetUrl:
    """An address of a target, read."""

    scheme: str
    host: str
    """A name in lower case ASCII without a trailing dot, or an address without brackets."""
    port: int
    path: str
    """With the query."""
    address: Address | None
    """When the host is one."""
    netloc: str = field(init=False, compare=False)
    """Host and port as they stand in a URL; a default port is left out."""
    origin: str = field(init=False, compare=False)
    """Scheme, host and port: what breakers, limits and pools are kept by."""
    text: str = field(init=False, compare=False)
    """All of it."""

    def __post_init__(self) -> None:
        # Once for each definition, not for each of its requests.
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        netloc = host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"
        object.__setattr__(self, "netloc", netloc)
        object.__setattr__(self, "origin", f"{self.scheme}://{netloc}")
        object.__setattr__(self, "text", f"{self.origin}{self.path}")

    def __str__(self) -> str:
        return self.text


def read_url(text: str, policy: UrlPolicy, *, pointer: str = "/target/url") -> TargetUrl:
    """Read a URL and check it; what a name resolves to is checked when it is called."""
    try:
        url = _read(text)
        _check(url, policy)
    except BadTarget as refused:
        refused.pointer = pointer
        raise
    return url


def _read(text: str) -> TargetUrl:
    if len(text) > URL_CHARACTERS_MAX:
        raise BadTarget(f"expected a URL of at most {URL_CHARACTERS_MAX} characters")
    if FORBIDDEN.search(text):
        raise BadTarget("expected a URL without blanks, control characters and backslashes")
    parts = PARTS.fullmatch(text)
    if parts is None:
        raise BadTarget("expected a URL such as https://example.com/hook")
    scheme = parts["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise BadTarget(f"expected a URL of http or https, got {scheme}")
    if parts["fragment"] is not None:
        raise BadTarget("expected a URL without a fragment: it is never sent")
    host, address, port = _authority(parts["authority"])
    path = quote(f"{parts['path'] or '/'}{parts['query'] or ''}", safe=KEPT)
    return TargetUrl(scheme, host, port or DEFAULT_PORTS[scheme], path, address)


def _authority(authority: str) -> tuple[str, Address | None, int | None]:
    if "@" in authority:
        raise BadTarget("expected a URL without a user name: credentials belong into `auth`")
    if "%" in authority:
        raise BadTarget("expected a host without percent signs and zones")
    if authority.startswith("["):
        inside, closed, rest = authority[1:].partition("]")
        address = read_address(inside)
        if not closed or not isinstance(address, IPv6Address):
            raise BadTarget("expected an IPv6 address between brackets")
        return str(address), address, _port(rest)
    host, colon, rest = authority.partition(":")
    name = _name(host)
    literal = read_address(name)
    return name, literal, _port(colon + rest)


def _port(text: str) -> int | None:
    if not text:
        return None
    digits = text[1:]
    if text[0] != ":" or not (digits.isascii() and digits.isdecimal()):
        raise BadTarget(f"expected a port number, got {text[:20]!r}")
    port = int(digits) if len(digits) <= len(str(PORT_MAX)) else 0
    if not 1 <= port <= PORT_MAX:
        raise BadTarget(f"expected a port within 1-{PORT_MAX}, got {digits[:20]}")
    return port


def _name(host: str) -> str:
    """A host name in lower case ASCII; numbers only as a dotted quad in its one canonical form."""
    try:
        # Folds full-width digits and ideographic dots, too: what follows sees what a resolver sees.
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise BadTarget(f"expected a host name, got {host[:80]!r}") from None
    name = name.removesuffix(".")
    if not 1 <= len(name) <= HOST_CHARACTERS_MAX:
        raise BadTarget(f"expected a host of 1-{HOST_CHARACTERS_MAX} characters")
    labels = name.split(".")
    for label in labels:
        if not LABEL.fullmatch(label) or len(label) > LABEL_CHARACTERS_MAX:
            raise BadTarget(f"expected a host name, got {name[:80]!r}")
    if NUMBER.fullmatch(labels[-1]) and read_address(name) is None:
        # 127.1, 2130706433, 0177.0.0.1 and 0x7f.1 are addresses to a resolver, whatever they look.
        raise BadTarget(f"expected an address as four decimal numbers, got {name[:80]!r}")
    return name


def _check(url: TargetUrl, policy: UrlPolicy) -> None:
    addresses = policy.addresses
    local = url.address is not None and is_loopback(url.address)
    named_local = url.host == "localhost" or url.host.endswith(".localhost")
    if addresses.loopback and (local or named_local):
        return
    if url.scheme == "http" and not policy.plain_http:
        raise BadTarget("expected a URL of https; plain http is not allowed here")
    if not policy.allows_port(url.port):
        raise BadTarget(f"expected one of the allowed ports, got {url.port}")
    if url.address is not None:
        if addresses.refusal(url.address):
            # Not of what kind it is: that is told by what the operator has opened, too.
            raise BadTarget(f"expected a public address, got {url.host}")
    elif url.host not in policy.names and _is_private(url.host):
        raise BadTarget(f"expected a public name, got {url.host}")


def _is_private(host: str) -> bool:
    return "." not in host or any(
        host == suffix or host.endswith(f".{suffix}") for suffix in PRIVATE_SUFFIXES
    )
