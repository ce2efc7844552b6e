"""One request through libcurl: its options, its callbacks, and what came of it.

A handle is made for one shape of request (method, body or not, certificates) and used again for the
next one of that shape; what differs between requests is set every time, the rest once.
"""

import socket
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Protocol

import certifi
import pycurl

from betimes.target.address import read_address
from betimes.target.answer import (
    HEADER_BYTES_MAX,
    KEPT_BYTES_MAX,
    READ_BYTES_MAX,
    Answer,
    NoAnswer,
    Request,
    Timings,
    Tls,
    Trouble,
)

Monotonic = Callable[[], float]
STOP = -1
"""Returned to libcurl to end a transfer."""
CONNECTIONS_IDLE_SECONDS = 55
"""Shorter than the usual idle limits of servers, so that a kept connection is rarely a dead one."""
MILLISECONDS = 1000
BLANK = (b"\r\n", b"\n")
"""What ends a head."""
NOT_TWICE = "the connection was lost before an answer came"
NOT_OURS = "the lease ended before anything was sent"

TROUBLES: dict[int, Trouble] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Trouble.RESOLVE,
    pycurl.E_COULDNT_RESOLVE_PROXY: Trouble.RESOLVE,
    pycurl.E_COULDNT_CONNECT: Trouble.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Trouble.TIMEOUT,
    pycurl.E_SSL_CONNECT_ERROR: Trouble.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Trouble.TLS,
    pycurl.E_SSL_CERTPROBLEM: Trouble.TLS,
    pycurl.E_SSL_CIPHER: Trouble.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Trouble.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Trouble.TLS,
    pycurl.E_URL_MALFORMAT: Trouble.REFUSED,
}
"""Everything else is a connection that broke or an answer that made no sense."""


class Shape(NamedTuple):
    """What cannot change between two uses of a handle."""

    method: str
    has_body: bool
    tls: Tls | None


class SocketAddress(Protocol):
    """What libcurl wants a socket for."""

    family: int
    socktype: int
    protocol: int
    addr: tuple[str, int]


class Proxy(NamedTuple):
    """A forward proxy of the operator: where it is, and which of its addresses may be called."""

    url: str
    addresses: frozenset[str]


def shape_of(request: Request) -> Shape:
    """The shape of the handle that a request needs."""
    return Shape(request.method, request.body is not None, request.tls)


class Transfer:
    """A handle of libcurl, and the request it is carrying."""

    __slots__ = (
        "_body",
        "_head",
        "_head_bytes",
        "_is_headed",
        "_kept_max",
        "_last",
        "_monotonic",
        "_opened",
        "_proxy",
        "_read_max",
        "_refusal",
        "_repeated",
        "_request",
        "_sent",
        "_size",
        "_stale",
        "address",
        "curl",
        "dns_seconds",
        "heard_at",
        "shape",
        "started_at",
        "too_slow",
    )

    def __init__(
        self, shape: Shape, *, monotonic: Monotonic, proxy: Proxy | None, user_agent: str
    ) -> None:
        self.shape = shape
        self.curl = curl = pycurl.Curl()
        self.address = ""
        self._monotonic = monotonic
        self._proxy = proxy
        self._request: Request | None = None
        self._kept_max = KEPT_BYTES_MAX
        self._read_max = READ_BYTES_MAX
        self.dns_seconds: float | None = None
        self._opened: socket.socket | None = None
        self._last: dict[int, Any] = {}
        self._clear()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROXY, "" if proxy is None else proxy.url)
        curl.setopt(pycurl.USERAGENT, user_agent)
        curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        curl.setopt(pycurl.MAXAGE_CONN, CONNECTIONS_IDLE_SECONDS)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._before_request)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self._set_shape(shape)

    def begin(self, request: Request, *, address: str, dns_seconds: float | None) -> None:
        """Load a request that will be sent to an address and to no other."""
        curl, url = self.curl, request.url
        self._clear()
        self._request = request
        self._kept_max = request.kept_max
        self._read_max = max(READ_BYTES_MAX, request.kept_max)
        self.address = address
        self.dns_seconds = dns_seconds
        self.started_at = self._monotonic()
        self._set(pycurl.URL, url.text)
        if self._proxy is None:
            literal = f"[{address}]" if ":" in address else address
            self._set(pycurl.CONNECT_TO, [f"{_bracketed(request)}:{url.port}:{literal}:{url.port}"])
        curl.setopt(pycurl.HTTPHEADER, request.headers)
        if request.body is not None:
            curl.setopt(pycurl.POSTFIELDS, request.body)
        patience = request.patience
        spent = dns_seconds or 0.0
        left = max(0.001, patience.total - spent)
        self._set(pycurl.TIMEOUT_MS, int(left * MILLISECONDS) or 1)
        self._set(pycurl.CONNECTTIMEOUT_MS, int(min(patience.connect, left) * MILLISECONDS) or 1)

    def _set(self, option: int, value: Any) -> None:
        """Set an option unless it has that value already: many requests differ in little."""
        if self._last.get(option) != value:
            self.curl.setopt(option, value)
            self._last[option] = value

    def is_silent(self, now: float) -> bool:
        """Whether an answer has begun and does not go on."""
        request = self._request
        if request is None or not self.heard_at:
            return False
        return now - self.heard_at > request.patience.idle

    def finish(self, code: int, message: str) -> Answer | NoAnswer:
        """What came of it."""
        curl = self.curl
        # A head that breaks off is no answer, whatever its first line says.
        status = curl.getinfo(pycurl.RESPONSE_CODE) if self._is_headed else 0
        cut = code == pycurl.E_WRITE_ERROR and self._size > self._read_max
        address = curl.getinfo(pycurl.PRIMARY_IP) or ""
        if status and (not code or cut) and not self._refusal:
            return Answer(
                status=status,
                headers=self._headers(),
                body=bytes(self._body),
                truncated=self._size > len(self._body),
                address=address,
                reused=not curl.getinfo(pycurl.NUM_CONNECTS),
                timings=self._timings(),
            )
        trouble, detail = TROUBLES.get(code, Trouble.BROKEN), message
        if self._stale:
            trouble, detail = Trouble.UNSENT, NOT_OURS
        elif self._repeated:
            # Whatever stopped the second request: the first one was sent and has no answer.
            trouble, detail = Trouble.BROKEN, NOT_TWICE
        elif self._refusal:
            trouble, detail = Trouble.REFUSED, self._refusal
        elif self.too_slow:
            trouble, detail = Trouble.TIMEOUT, "the answer stopped coming"
        elif self._head and not self._is_headed and not code:
            detail = "the answer broke off in its headers"
        elif self._head_bytes > HEADER_BYTES_MAX:
            detail = f"more than {HEADER_BYTES_MAX} bytes of headers"
        return NoAnswer(trouble=trouble, detail=detail, address=address, timings=self._timings())

    def end(self) -> None:
        """The request is over; the handle waits for the next one."""
        self._clear()
        self._request = None

    def close(self) -> None:
        """Done with the handle itself."""
        self._clear()
        self.curl.close()

    def _clear(self) -> None:
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._is_headed = False
        self._body = bytearray()
        self._size = 0
        self._refusal = ""
        self._sent = self._repeated = self._stale = False
        self._close_opened()
        self.heard_at = 0.0
        self.started_at = 0.0
        self.dns_seconds = None
        self.too_slow = False

    def _set_shape(self, shape: Shape) -> None:
        curl = self.curl
        if shape.method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
        elif shape.has_body:
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.CUSTOMREQUEST, shape.method)
        elif shape.method != "GET":
            curl.setopt(pycurl.CUSTOMREQUEST, shape.method)
        tls = shape.tls
        if tls is None or tls.authorities is None:
            curl.setopt(pycurl.CAINFO, certifi.where())
        else:
            curl.setopt(pycurl.CAINFO_BLOB, tls.authorities)
        if tls is not None and tls.certificate is not None:
            curl.setopt(pycurl.SSLCERT_BLOB, tls.certificate)
            if tls.key is not None:
                curl.setopt(pycurl.SSLKEY_BLOB, tls.key)

    def _open_socket(self, _purpose: int, wanted: SocketAddress) -> socket.socket | int:
        """The last word: the address that is about to be connected, whoever chose it."""
        if self._sent:
            self._repeated = True  # nobody needs another connection for what was sent already
            return int(pycurl.SOCKET_BAD)
        request = self._request
        host = _host(wanted)
        if request is None or not host:
            self._refusal = "not an internet address"
        elif self._proxy is not None:
            if host not in self._proxy.addresses:
                self._refusal = "the address is not that of the proxy"
        elif request.addresses.refusal_of(host):
            self._refusal = "the address may not be called"
        elif host != self.address:
            self._refusal = "the address is not the one that was checked"
        if self._refusal:
            return int(pycurl.SOCKET_BAD)
        # pycurl makes a copy of the descriptor; this one is closed when the transfer is over.
        self._close_opened()
        self._opened = socket.socket(wanted.family, wanted.socktype, wanted.protocol)
        return self._opened

    def _close_opened(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _before_request(self, *_: object) -> int:
        """The connection stands, and nothing of the request is sent: it is sent once, or never.

        libcurl would send it again by itself, up to five times: when a connection that it used
        again dies before an answer, when a stream of HTTP/2 is refused, when 417 is answered. It
        comes by here each time, whatever the method and the body.
        """
        request = self._request
        if self._sent:
            self._repeated = True
            return int(pycurl.PREREQFUNC_ABORT)
        if request is not None and request.may_go is not None and not request.may_go():
            self._stale = True
            return int(pycurl.PREREQFUNC_ABORT)
        self._sent = True
        return int(pycurl.PREREQFUNC_OK)

    def _on_header(self, line: bytes) -> int | None:
        self.heard_at = self._monotonic()
        if line.startswith(b"HTTP/"):
            self._head.clear()  # an interim answer came before
            self._is_headed = False
        elif line in BLANK:
            self._is_headed = True
        self._head_bytes += len(line)
        if self._head_bytes > HEADER_BYTES_MAX:
            return STOP
        self._head.append(line)
        return None

    def _on_body(self, chunk: bytes) -> int | None:
        self.heard_at = self._monotonic()
        self._size += len(chunk)
        room = self._kept_max - len(self._body)
        if room > 0:
            self._body += chunk[:room]
        return STOP if self._size > self._read_max else None

    def _headers(self) -> list[tuple[str, str]]:
        found = []
        for line in self._head[1:]:
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                found.append((name.strip().lower(), value.strip()))
        return found

    def _timings(self) -> Timings:
        curl = self.curl
        dns = self.dns_seconds
        before = dns or 0.0

        def step(info: int) -> float | None:
            seconds = curl.getinfo(info)
            return round((seconds + before) * MILLISECONDS, 3) if seconds else None

        return Timings(
            dns=None if dns is None else round(dns * MILLISECONDS, 3),
            connect=step(pycurl.CONNECT_TIME),
            tls=step(pycurl.APPCONNECT_TIME),
            first_byte=step(pycurl.STARTTRANSFER_TIME),
            total=step(pycurl.TOTAL_TIME) or round(before * MILLISECONDS, 3),
        )


def _host(wanted: SocketAddress) -> str:
    """The address in its canonical form; empty for anything but an address of the internet."""
    if wanted.family not in (socket.AF_INET, socket.AF_INET6) or len(wanted.addr) < 2:  # noqa: PLR2004
        return ""
    address = read_address(wanted.addr[0])
    return "" if address is None else str(address)


def _bracketed(request: Request) -> str:
    url = request.url
    return f"[{url.host}]" if isinstance(url.address, IPv6Address) else url.host
