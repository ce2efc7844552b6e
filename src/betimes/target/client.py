"""The HTTP client: libcurl driven by the event loop, connections kept per tenant.

Each tenant has multi handles of its own, and with them connections of its own: what one tenant was
allowed to connect to, or has sent over a connection, never serves another. There are several,
because libcurl looks at every connection of a handle before it uses one. All sockets of all of
them lie in one epoll set, and the event loop watches that set instead of the sockets: a turn of the
loop takes whatever is ready, however many there are.
"""

import asyncio
import contextlib
import select
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pycurl

from betimes.domain.clock import Clock
from betimes.target.answer import Answer, NoAnswer, Request, Timings, Trouble
from betimes.target.resolve import Resolver
from betimes.target.transfer import Proxy, Shape, Transfer, shape_of

EVENTS_AT_ONCE = 1_024
SWEEP_SECONDS = 1.0
IDLE_TENANT_SECONDS = 60.0
REQUESTS_MAX = 128
"""Requests under way in one handle; the next ones go into another of the same tenant."""
CONNECTIONS_KEPT = 256
"""Idle connections of one handle."""
HANDLES_KEPT = 512
NOTHING_HEARD = -1

Result = Answer | NoAnswer


class _Multi:
    """The transfers and connections of one tenant."""

    __slots__ = ("active", "idle_since", "multi", "timer", "urgent")

    def __init__(self) -> None:
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_MAXCONNECTS, CONNECTIONS_KEPT)
        self.active: dict[pycurl.Curl, tuple[Transfer, asyncio.Future[Result]]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.urgent = False
        self.idle_since = 0.0


NOWHERE = "its name leads to no address that may be called"
DENIED = "its address may not be called"
Way = tuple[str, float | None, NoAnswer | None]
"""Where to connect, and how long it took to find out; or why not."""
Denied = Callable[[Request, str, str], None]
"""Told of an address that may not be called, and why: for those who run the service."""


class Client:
    """Sends requests. Belongs to one event loop; `close` ends every connection."""

    def __init__(
        self,
        *,
        resolver: Resolver,
        clock: Clock,
        user_agent: str = "betimes",
        proxy: Proxy | None = None,
        on_denied: Denied | None = None,
    ) -> None:
        self._resolver = resolver
        self._on_denied = on_denied
        self._clock = clock
        self._user_agent = user_agent
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._multis: dict[UUID, list[_Multi]] = {}
        self._of_socket: dict[int, _Multi] = {}
        self._free: dict[Shape, list[Transfer]] = {}
        self._freed = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._epoll.fileno(), self._on_ready)

    @property
    def active(self) -> int:
        """Requests under way."""
        return sum(len(one.active) for each in self._multis.values() for one in each)

    async def send(self, request: Request) -> Result:
        """Send one request and wait for what comes of it; cancelled, its connection is closed."""
        address, dns_seconds, refused = await self._address(request)
        if refused is not None:
            return refused
        one = self._multi(request.tenant)
        transfer = self._transfer(shape_of(request))
        try:
            transfer.begin(request, address=address, dns_seconds=dns_seconds)
        except pycurl.error as error:
            transfer.close()
            return NoAnswer(trouble=Trouble.REFUSED, detail=str(error.args[-1]))
        future: asyncio.Future[Result] = self._loop.create_future()
        one.active[transfer.curl] = transfer, future
        one.multi.add_handle(transfer.curl)
        self._sweep_later()
        try:
            result = await future
        except asyncio.CancelledError:
            if transfer.curl in one.active:
                del one.active[transfer.curl]
                one.multi.remove_handle(transfer.curl)
                transfer.close()
            raise
        if isinstance(result, NoAnswer) and result.trouble is Trouble.CONNECT:
            self._resolver.failed(request.url.host, address)
        return result

    async def send_repeatable(self, request: Request) -> Result:
        """The same for a request that does no harm when it comes twice: no attempt of a run.

        A connection that was kept may be lost just when it is used; that says nothing about the
        server, so it is asked once more.
        """
        result = await self.send(request)
        if isinstance(result, NoAnswer) and result.trouble is Trouble.BROKEN:
            result = await self.send(request)
        return result

    def close(self) -> None:
        """End everything; requests under way are given up."""
        self._loop.remove_reader(self._epoll.fileno())
        if self._sweeper is not None:
            self._sweeper.cancel()
        for each in self._multis.values():
            for one in each:
                self._close(one)
        self._multis.clear()
        for transfers in self._free.values():
            for transfer in transfers:
                transfer.close()
        self._free.clear()
        self._epoll.close()

    async def _address(self, request: Request) -> Way:
        """Where to connect, checked: a name is refused as soon as one of its addresses is."""
        url = request.url
        if url.address is not None:
            found = self._checked(request, [str(url.address)], None)
            return found or ("", None, NoAnswer(trouble=Trouble.REFUSED, detail=DENIED))
        if self._proxy is not None:
            return "", None, None  # names are the proxy's business, as the operator wished
        began = self._clock.monotonic()
        if (known := self._resolver.known(url.host)) is not None:
            return self._checked(request, known, None) or self._nowhere(began)
        try:
            async with asyncio.timeout(request.patience.connect):
                addresses = await self._resolver.resolve(url.host)
        except TimeoutError:
            return _none(Trouble.TIMEOUT, "its name was not resolved in time", began, self._clock)
        except OSError:
            return self._nowhere(began)
        spent = self._clock.monotonic() - began
        return self._checked(request, addresses, spent) or self._nowhere(began)

    def _nowhere(self, began: float) -> Way:
        """The same for a name that nobody knows and for one that leads into our network.

        What names mean there, and whether there are such names, is nobody's business.
        """
        return _none(Trouble.RESOLVE, NOWHERE, began, self._clock)

    def _checked(
        self, request: Request, addresses: list[str], dns_seconds: float | None
    ) -> Way | None:
        """The first of some addresses; None when one of them may not be called."""
        for address in addresses:
            if reason := request.addresses.refusal_of(address):
                if self._on_denied is not None:
                    self._on_denied(request, address, reason)
                return None
        return addresses[0], dns_seconds, None

    def _multi(self, tenant: UUID) -> _Multi:
        """The first handle of a tenant that is not full, so that few connections do most."""
        each = self._multis.setdefault(tenant, [])
        for one in each:
            if len(one.active) < REQUESTS_MAX:
                return one
        one = _Multi()
        one.multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket_of(one))
        one.multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer_of(one))
        each.append(one)
        return one

    def _transfer(self, shape: Shape) -> Transfer:
        waiting = self._free.get(shape)
        if waiting:
            self._freed -= 1
            return waiting.pop()
        return Transfer(
            shape,
            monotonic=self._clock.monotonic,
            proxy=self._proxy,
            user_agent=self._user_agent,
        )

    def _give_back(self, transfer: Transfer) -> None:
        # Certificates of tenants are not worth keeping around.
        if self._freed >= HANDLES_KEPT or transfer.shape.tls is not None:
            transfer.close()
            return
        transfer.end()
        self._free.setdefault(transfer.shape, []).append(transfer)
        self._freed += 1

    def _on_socket_of(self, one: _Multi) -> Callable[[int, int, Any, Any], None]:
        def on_socket(what: int, descriptor: int, _multi: object, _data: object) -> None:
            if what == pycurl.POLL_REMOVE:
                if self._of_socket.pop(descriptor, None) is not None:
                    with contextlib.suppress(OSError):
                        self._epoll.unregister(descriptor)
                return
            mask = 0
            if what & pycurl.POLL_IN:
                mask |= select.EPOLLIN
            if what & pycurl.POLL_OUT:
                mask |= select.EPOLLOUT
            if descriptor in self._of_socket:
                self._epoll.modify(descriptor, mask)
            else:
                self._epoll.register(descriptor, mask)
            self._of_socket[descriptor] = one

        return on_socket

    def _on_timer_of(self, one: _Multi) -> Callable[[int], None]:
        def on_timer(milliseconds: int) -> None:
            if one.timer is not None:
                one.timer.cancel()
                one.timer = None
            if milliseconds == 0:
                # Requests that begin in the same turn of the loop are set going together.
                if not one.urgent:
                    one.urgent = True
                    self._loop.call_soon(self._on_urgent, one)
            elif milliseconds > 0:
                one.timer = self._loop.call_later(milliseconds / 1000, self._on_time, one)

        return on_timer

    def _on_urgent(self, one: _Multi) -> None:
        one.urgent = False
        self._on_time(one)

    def _on_time(self, one: _Multi) -> None:
        if one.multi.closed:
            return
        one.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect(one)

    def _on_ready(self) -> None:
        touched: dict[int, _Multi] = {}
        of_socket = self._of_socket
        for descriptor, events in self._epoll.poll(0, EVENTS_AT_ONCE):
            one = of_socket.get(descriptor)
            if one is None:
                continue  # closed by an event before this one
            mask = 0
            if events & (select.EPOLLIN | select.EPOLLHUP):
                mask |= pycurl.CSELECT_IN
            if events & select.EPOLLOUT:
                mask |= pycurl.CSELECT_OUT
            if events & select.EPOLLERR:
                mask |= pycurl.CSELECT_ERR
            one.multi.socket_action(descriptor, mask)
            touched[id(one)] = one
        for one in touched.values():
            self._collect(one)

    def _collect(self, one: _Multi) -> None:
        """Hand out what is finished."""
        left = 1
        while left:
            left, good, bad = one.multi.info_read()
            for curl in good:
                self._finish(one, curl, 0, "")
            for curl, code, message in bad:
                self._finish(one, curl, code, message)
        if not one.active:
            one.idle_since = self._clock.monotonic()

    def _finish(self, one: _Multi, curl: pycurl.Curl, code: int, message: str) -> None:
        transfer, future = one.active.pop(curl)
        one.multi.remove_handle(curl)
        result = transfer.finish(code, message)
        self._give_back(transfer)
        if not future.done():
            future.set_result(result)

    def _sweep_later(self) -> None:
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Give up answers that have stopped coming, and connections of tenants long silent."""
        self._sweeper = None
        now = self._clock.monotonic()
        for tenant, each in list(self._multis.items()):
            for one in list(each):
                self._give_up_silent(one, now)
                if not one.active and now - one.idle_since > IDLE_TENANT_SECONDS:
                    each.remove(one)
                    self._close(one)
            if not each:
                del self._multis[tenant]
        if self._multis:
            self._sweep_later()

    def _give_up_silent(self, one: _Multi, now: float) -> None:
        silent = [curl for curl, (transfer, _) in one.active.items() if transfer.is_silent(now)]
        for curl in silent:
            one.active[curl][0].too_slow = True
            self._finish(one, curl, pycurl.E_OPERATION_TIMEDOUT, "")

    def _close(self, one: _Multi) -> None:
        if one.timer is not None:
            one.timer.cancel()
        for curl, (transfer, future) in list(one.active.items()):
            one.multi.remove_handle(curl)
            transfer.close()
            future.cancel()
        one.active.clear()
        one.multi.close()


def _none(trouble: Trouble, detail: str, began: float, clock: Clock) -> tuple[str, None, NoAnswer]:
    spent = round((clock.monotonic() - began) * 1000, 3)
    timings = Timings(dns=spent, total=spent)
    return "", None, NoAnswer(trouble=trouble, detail=detail, timings=timings)
