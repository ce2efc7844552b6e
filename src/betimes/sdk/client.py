"""The two clients: one blocks, one is awaited; both say exactly the same."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPException
from typing import Any, Self

import msgspec

import betimes
from betimes.domain.errors import BadSetting
from betimes.sdk import ambient
from betimes.sdk.address import read_address
from betimes.sdk.async_http import AsyncHttp
from betimes.sdk.calling import AsyncCaller, Caller
from betimes.sdk.errors import Unreachable
from betimes.sdk.events import Event, EventReader
from betimes.sdk.exchange import (
    Given,
    Manner,
    Request,
    Response,
    pause_after,
    problem_of,
    request_of,
    value_of,
)
from betimes.sdk.operation import Operation
from betimes.sdk.operations import EVENTS_STREAM, RUNS_FOLLOW_LOG
from betimes.sdk.raw import AsyncRawCaller, Performing, RawCaller, RawResponse, raw_of
from betimes.sdk.resources import AsyncResources, Resources
from betimes.sdk.sync_http import SyncHttp
from betimes.sdk.way import Way, client_way

TIMEOUT_SECONDS = 30.0
RETRY_FOR_SECONDS = 60.0
"""How long a call is tried: the nodes of a service are restarted one by one in less than that."""
RETRY_FOR = "BETIMES_RETRY_FOR"
RESUME_PAUSE_SECONDS = 1.0
Told = Callable[[Response | Unreachable, float], None]
"""Hears why a call is tried again, and in how many seconds."""
BROKEN = (Unreachable, OSError, EOFError, HTTPException)
"""How a stream ends that is to go on."""
LOG_END = "end"


def manner_of(
    way: Way, *, timeout: float, retry_for: float | None, told: Told | None = None
) -> Manner:
    """How a client talks."""
    key = way.api_key
    if key is not None and (not key or not key.isascii() or not key.isprintable()):
        raise BadSetting("expected an API key of printable ASCII characters")
    return Manner(
        api_key=key,
        tenant=way.tenant,
        timeout=timeout,
        retry_for=_retry_for(retry_for),
        told=told,
        agent=f"betimes-python/{betimes.__version__}",
        new_key=ambient.new_key,
        roll=ambient.roll,
    )


def _retry_for(given: float | None) -> float:
    if given is not None:
        return given
    text = ambient.variable(RETRY_FOR)
    try:
        return RETRY_FOR_SECONDS if text is None else float(text)
    except ValueError:
        raise BadSetting(f"expected {RETRY_FOR} in seconds, got {text!r}") from None


class Client(Resources):
    """A blocking client. Nothing is connected before the first call; safe to share by threads.

    What is not given comes from BETIMES_URL, BETIMES_API_KEY and the profile that `betimes login`
    keeps, or all of it from a `Way`; `tenant` is for keys of administrators. A call that finds no
    server, or one that says to come back, is tried again for `retry_for` seconds, if repeating it
    is safe; 0 means never, and BETIMES_RETRY_FOR sets it for those who do not say.
    """

    def __init__(
        self,
        url: str | Way | None = None,
        api_key: str | None = None,
        *,
        profile: str | None = None,
        tenant: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_for: float | None = None,
        told: Told | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        way = (
            url
            if isinstance(url, Way)
            else client_way(url, api_key, profile=profile, tenant=tenant)
        )
        self.url = way.url
        self._http = SyncHttp(read_address(self.url), context=ssl_context)
        self._manner = manner_of(way, timeout=timeout, retry_for=retry_for, told=told)
        super().__init__(Caller(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of every connection and end streams; the client may still be used afterwards."""
        self._http.close()

    def perform(self, operation: Operation, given: Given) -> Any:
        """What an operation answers; the generated methods call this."""
        return value_of(operation, self._send(request_of(operation, given, self._manner)))

    @property
    def with_raw_response(self) -> Any:
        """The same methods, each giving a `RawResponse`: status, headers, body and `parse()`."""
        return Resources(RawCaller(Performing(self._perform_raw)))

    def _perform_raw(self, operation: Operation, given: Given) -> RawResponse:
        return raw_of(operation, self._send(request_of(operation, given, self._manner)))

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = msgspec.UNSET,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Any request with our credentials; the answer comes back as it is, whatever its status."""
        return self._send(_raw(self._manner, method, path, body, query, headers))

    def stream_events(
        self, *, types: str | Sequence[str] | None = None, last_event_id: str | None = None
    ) -> Iterator[Event]:
        """Events as they happen; a broken connection is resumed where it ended."""
        return self._follow(EVENTS_STREAM, Given(query={"types": types}), last_event_id)

    def stream_log(
        self, run: str, *, after: int = 0, attempt: int | None = None
    ) -> Iterator[Event]:
        """The lines of a run's log as they come, each a `line`, and then its `end`."""
        given = Given(path={"run": run}, query={"attempt": attempt})
        for event in self._follow(RUNS_FOLLOW_LOG, given, str(after)):
            yield event
            if event.type == LOG_END:
                return

    def _follow(self, operation: Operation, given: Given, last: str | None) -> Iterator[Event]:
        """Events of a stream that is opened again whenever it breaks off, until we are closed."""
        closings = self._http.closings
        while self._http.closings == closings:
            reader = EventReader(last)
            try:
                with self._listen(_stream_request(self._manner, operation, given, last)) as lines:
                    for line in lines:
                        if (event := reader.feed(line)) is not None:
                            last = event.id or last
                            yield event
            except BROKEN:
                pass
            if self._http.closings == closings:
                ambient.pause(RESUME_PAUSE_SECONDS)

    @contextmanager
    def _listen(self, request: Request) -> Iterator[Iterator[bytes]]:
        with self._http.stream(request) as (head, lines):
            if head.status >= 400:  # noqa: PLR2004 -- HTTP
                raise problem_of(Response(head.status, head.headers, b"".join(lines)))
            yield lines

    def _send(self, request: Request) -> Response:
        patience = _Patience(request, self._manner)
        while True:
            failure: Response | Unreachable
            try:
                failure = self._http.send(request)
            except Unreachable as lost:
                failure = lost
            pause = patience.after(failure)
            if pause is None:
                return _answered(failure)
            ambient.pause(pause)


class AsyncClient(AsyncResources):
    """The awaited client. Nothing is connected before the first call; made as `Client` is."""

    def __init__(
        self,
        url: str | Way | None = None,
        api_key: str | None = None,
        *,
        profile: str | None = None,
        tenant: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retry_for: float | None = None,
        told: Told | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        way = (
            url
            if isinstance(url, Way)
            else client_way(url, api_key, profile=profile, tenant=tenant)
        )
        self.url = way.url
        self._http = AsyncHttp(read_address(self.url), context=ssl_context)
        self._manner = manner_of(way, timeout=timeout, retry_for=retry_for, told=told)
        super().__init__(AsyncCaller(self))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of every connection; the client may still be used afterwards."""
        await self._http.close()

    async def perform(self, operation: Operation, given: Given) -> Any:
        """What an operation answers; the generated methods call this."""
        return value_of(operation, await self._send(request_of(operation, given, self._manner)))

    @property
    def with_raw_response(self) -> Any:
        """The same methods, each awaited for a `RawResponse`."""
        return AsyncResources(AsyncRawCaller(Performing(self._perform_raw)))

    async def _perform_raw(self, operation: Operation, given: Given) -> RawResponse:
        return raw_of(operation, await self._send(request_of(operation, given, self._manner)))

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = msgspec.UNSET,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Any request with our credentials; the answer comes back as it is, whatever its status."""
        return await self._send(_raw(self._manner, method, path, body, query, headers))

    def stream_events(
        self, *, types: str | Sequence[str] | None = None, last_event_id: str | None = None
    ) -> AsyncIterator[Event]:
        """Events as they happen; a broken connection is resumed where it ended."""
        return self._follow(EVENTS_STREAM, Given(query={"types": types}), last_event_id)

    async def stream_log(
        self, run: str, *, after: int = 0, attempt: int | None = None
    ) -> AsyncIterator[Event]:
        """The lines of a run's log as they come, each a `line`, and then its `end`."""
        given = Given(path={"run": run}, query={"attempt": attempt})
        async for event in self._follow(RUNS_FOLLOW_LOG, given, str(after)):
            yield event
            if event.type == LOG_END:
                return

    async def _follow(
        self, operation: Operation, given: Given, last: str | None
    ) -> AsyncIterator[Event]:
        """Events of a stream that is opened again whenever it breaks off."""
        while True:
            reader = EventReader(last)
            request = _stream_request(self._manner, operation, given, last)
            try:
                async with self._listen(request) as lines:
                    async for line in lines:
                        if (event := reader.feed(line)) is not None:
                            last = event.id or last
                            yield event
            except BROKEN:
                pass
            await ambient.apause(RESUME_PAUSE_SECONDS)

    @asynccontextmanager
    async def _listen(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._http.stream(request) as (head, lines):
            if head.status >= 400:  # noqa: PLR2004 -- HTTP
                body = b"".join([line async for line in lines])
                raise problem_of(Response(head.status, head.headers, body))
            yield lines

    async def _send(self, request: Request) -> Response:
        patience = _Patience(request, self._manner)
        while True:
            failure: Response | Unreachable
            try:
                failure = await self._http.send(request)
            except Unreachable as lost:
                failure = lost
            pause = patience.after(failure)
            if pause is None:
                return _answered(failure)
            await ambient.apause(pause)


class _Patience:
    """How long one call is tried, and when it is tried again."""

    __slots__ = ("_began", "_manner", "_request", "_tried")

    def __init__(self, request: Request, manner: Manner) -> None:
        self._request = request
        self._manner = manner
        self._began = ambient.monotonic()
        self._tried = 0

    def after(self, failure: Response | Unreachable) -> float | None:
        """Seconds to wait before the next try; None when this is the answer."""
        self._tried += 1
        if isinstance(failure, Response) and failure.status < 400:  # noqa: PLR2004 -- HTTP
            return None
        spent = ambient.monotonic() - self._began
        manner = self._manner
        pause = pause_after(self._request, failure, tried=self._tried, spent=spent, manner=manner)
        if pause is not None and manner.told is not None:
            manner.told(failure, pause)
        return pause


def _answered(failure: Response | Unreachable) -> Response:
    if isinstance(failure, Unreachable):
        raise failure
    return failure


def _raw(
    manner: Manner,
    method: str,
    path: str,
    body: Any,
    query: Mapping[str, Any] | None,
    headers: Mapping[str, str] | None,
) -> Request:
    named = {name.lower(): value for name, value in (headers or {}).items()}
    operation = Operation(
        name="raw",
        method=method.upper(),
        path=path,
        answers={},
        keyed="idempotency-key" in named,
        accepts=named.get("accept", "*/*"),
    )
    given = Given(query=query or {}, body=body, idempotency_key=named.get("idempotency-key"))
    request = request_of(operation, given, manner)
    return _with(request, named)


def _with(request: Request, headers: Mapping[str, str]) -> Request:
    return Request(
        method=request.method,
        path=request.path,
        headers={**request.headers, **headers},
        body=request.body,
        timeout=request.timeout,
        repeatable=request.repeatable,
    )


def _stream_request(
    manner: Manner, operation: Operation, given: Given, last: str | None
) -> Request:
    request = request_of(operation, given, manner)
    return request if last is None else _with(request, {"last-event-id": last})
