"""The ASGI application: from bytes to a handler and back.

One request: find the route, know the caller, admit, read, call, answer. Everything that goes wrong
on the way is a `Trouble` or becomes one, so there is one place where errors turn into answers.

Long because the steps of one request, streams included, share what is known of it.
"""

import asyncio
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from struct import Struct
from types import MappingProxyType
from typing import Any, NoReturn

from betimes.api.accepting import check_acceptable
from betimes.api.call import Call, Reply, Request, Stream
from betimes.api.cursor import BEGINNING, Leaves
from betimes.api.editing import repeated
from betimes.api.keyed import read_idempotency_key
from betimes.api.leasing import holder_of
from betimes.api.leaving import Receive, while_there
from betimes.api.limits import Crowded
from betimes.api.pressure import SHED
from betimes.api.problem import MEDIA_TYPE, Trouble, body_of, trouble_of
from betimes.api.reading import (
    Common,
    check_media,
    convert,
    convert_each,
    read_body,
    read_json,
    read_query,
    refuse_body,
    single,
    unpacked,
)
from betimes.api.refusing import told_before
from betimes.api.route import Found, Load, Route, Router
from betimes.api.service import Service
from betimes.api.shaping import check_fields, shaped
from betimes.api.version import API_VERSION, check_version
from betimes.api.visiting import session_cookie, visitor
from betimes.domain.errors import Bug, Forbidden, Refused, SchedulerError, Unavailable
from betimes.domain.ids import TAIL_BYTES, compose, to_ms, to_text
from betimes.ops.credentials import Unknown
from betimes.ops.keys import Caller
from betimes.ops.tenants import acting_for
from betimes.rhythm import aside_if_large

Scope = MutableMapping[str, Any]
Send = Callable[[Any], Awaitable[None]]

NO_PLACES: Mapping[str, str] = MappingProxyType({})
NONE_DOUBLED: frozenset[bytes] = frozenset()
TAILS = 256
_TAIL = Struct(">Q")
WELL_FORMED_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"api-version", API_VERSION.encode()),
)
ADMIN_HEADER = b"betimes-tenant"
EXPECTED = (Trouble, SchedulerError, TimeoutError)
REFUSALS_PER_SECOND = 200
"""Refusals cost time, too: so many a second are a few hundredths of it."""
HELD_SECONDS_MAX = 5.0
EVENT_STREAM = "text/event-stream"
CHECKED_SECONDS = 1.0
"""How long a stream goes on without a look at whether its caller may still follow it."""


class Application:
    """Serves a table of routes."""

    def __init__(self, *, service: Service, routes: Iterable[Route]) -> None:
        self.service = service
        self.router = Router(routes)
        self._tails: Iterator[tuple[int]] = iter(())
        self._held_back = 0
        self._requests = service.telemetry.counter("betimes_requests_total")
        self._seconds = service.telemetry.histogram("betimes_request_seconds")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise Bug(f"the API speaks HTTP, not {scope['type']}")
        began = self.service.clock.monotonic()
        request = self._request(scope)
        route: Route | None = None
        try:
            route, found = self._route(request)
            check_version(request)
            check_acceptable(request, route.offers)
            reply = await self._answer(route, found, request, receive)
        except Exception as error:  # noqa: BLE001 -- the last door: callers get answers, not silence
            reply = self._problem(error, request)
            if reply.status == HTTPStatus.SERVICE_UNAVAILABLE or isinstance(error, Crowded):
                await self._hold_back()
        reply.headers = _told(route, request, reply)
        name = "unknown" if route is None else route.name
        seconds = self.service.clock.monotonic() - began
        self._requests.add(operation=name, status=f"{reply.status // 100}xx")
        self._seconds.observe(seconds, operation=name)
        await _send(send, reply, request, receive)

    async def _hold_back(self) -> None:
        """Let somebody who was refused wait: a refusal in no time invites the next request."""
        pause = self.service.settings.shed_pause.total_seconds()
        if not pause or self.service.draining.begun:
            return
        self._held_back += 1
        try:
            # Not all at the same moment, or they come back together.
            jitter = 0.5 + self.service.roll()
            await self.service.clock.sleep(held_for(pause, self._held_back) * jitter)
        finally:
            self._held_back -= 1

    def _request(self, scope: Scope) -> Request:
        pairs = scope["headers"]
        headers: dict[bytes, bytes] = dict(pairs)
        client = scope.get("client")
        said = headers.get(b"request-id")
        return Request(
            method=scope["method"],
            path=scope["raw_path"].decode("latin-1"),
            query_string=scope["query_string"],
            headers=headers,
            doubled=NONE_DOUBLED if len(headers) == len(pairs) else _doubled(pairs),
            address=client[0] if client else "",
            id=self._request_id(said),
            server=scope.get("server"),
        )

    def _request_id(self, said: bytes | None) -> str:
        """The caller's own, if it is one, else a new one."""
        if said is not None and WELL_FORMED_ID.fullmatch(text := said.decode("latin-1")):
            return text
        found = next(self._tails, None)
        if found is None:  # asking the system once for many ids
            self._tails = _TAIL.iter_unpack(self.service.desk.entropy(TAILS * TAIL_BYTES))
            found = next(self._tails)
        return to_text("req", compose(to_ms(self.service.clock.now()), 0, found[0]))

    def _route(self, request: Request) -> tuple[Route, Found]:
        found = self.router.find(request.path)
        if found is None:
            raise Trouble("not_found", "there is nothing at this path", resource_type="path")
        method = "GET" if request.method == "HEAD" else request.method
        route = found.routes.get(method)
        if route is None:
            allowed = ", ".join(sorted(found.routes))
            raise Trouble(
                "method_not_allowed",
                f"expected one of {allowed}, got {request.method[:20]}",
                headers={"Allow": allowed},
            )
        return route, found

    async def _answer(
        self, route: Route, found: Found, request: Request, receive: Receive
    ) -> Reply:
        if self.service.draining.begun and route.load is not Load.FREE:
            raise Trouble("draining", "this node is about to stop", headers={"Connection": "close"})
        admission = self.service.admission
        place = admission.enter(route)
        try:
            async with asyncio.timeout(route.seconds):
                caller = ANYBODY if route.is_public else await self._caller(route, found, request)
                told = {} if route.is_public else admission.charge(caller, route)
                request.told = told
                # Slow bodies are read after this, so who sends many of them is known.
                admission.settle(place, request.address if route.is_public else str(caller.tenant))
                call = await self._call(route, found, request, receive, caller)
                if route.load in SHED:
                    self.service.pressure.check(route.load, call.body)
                reply = shaped(call, await self._settled(route, call, receive))
                if reply.stream is not None and reply.media == EVENT_STREAM:
                    pieces = self._while_allowed(route, found, request, reply.stream.pieces)
                    reply.stream = replace(reply.stream, pieces=pieces)
        finally:
            admission.leave(place)
        if reply.status == HTTPStatus.NOT_MODIFIED and not route.is_public:
            told = admission.give_back(caller, route)
        request.told = told
        return reply

    async def _settled(self, route: Route, call: Call[Any, Any], receive: Receive) -> Reply:
        try:
            return await self._handled(route, call, receive)
        except (Refused, Trouble) as error:
            reply = await told_before(call, trouble_of(error))
            if reply is None:
                raise
            return reply

    async def _handled(self, route: Route, call: Call[Any, Any], receive: Receive) -> Reply:
        if not route.waits:
            return await repeated(lambda: route.handler(call), call.request)
        # Work that comes for somebody who has gone meanwhile is somebody else's.
        reply = await while_there(receive, route.handler(call))
        if reply is None:
            raise Trouble("request_timeout", "the client did not wait for its answer")
        return reply

    async def _caller(self, route: Route, found: Found, request: Request) -> Caller:
        said = single(request.headers, request.doubled, b"authorization")
        challenge = {"WWW-Authenticate": 'Bearer realm="betimes"'}
        if said is None and (cookie := session_cookie(request)) is not None:
            return await self._allowed(route, request, await visitor(self.service, request, cookie))
        if said is None and route.by_lease:
            holder = holder_of(self.service.lease_secret, found.values[0])
            if holder is not None:
                return await self._holder(holder, request, challenge)
        if said is None:
            raise Trouble(
                "missing_credentials", "expected Authorization: Bearer <key>", headers=challenge
            )
        scheme, _, text = said.partition(" ")
        if scheme.lower() != "bearer":
            text = ""
        try:
            caller = await self.service.credentials.caller(text.strip(), request.address)
        except Unknown as error:
            self.service.admission.note_failure(request.address)
            raise Trouble(error.code, error.sentence, headers=challenge) from None
        return await self._allowed(route, request, caller)

    async def _while_allowed(
        self, route: Route, found: Found, request: Request, pieces: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """What a stream tells, as long as its caller could open it anew.

        A key that was revoked, has expired or belongs to a suspended tenant would go on listening
        otherwise, for as long as it keeps its connection.
        """
        checked = self.service.clock.monotonic()
        async with aclosing(pieces):
            async for piece in pieces:
                now = self.service.clock.monotonic()
                if now - checked >= CHECKED_SECONDS:
                    try:
                        await self._caller(route, found, request)
                    except (Refused, Trouble):
                        return
                    except Unavailable:  # nobody can say; and nothing new can be read, either
                        pass
                    checked = now
                yield piece

    async def _holder(self, holder: Caller, request: Request, challenge: dict[str, str]) -> Caller:
        """Who needs no key is refused when its tenant's keys would be."""
        try:
            await self.service.credentials.check_tenant(holder.tenant)
        except Unknown as error:
            self.service.admission.note_failure(request.address)
            raise Trouble(error.code, error.sentence, headers=challenge) from None
        return holder

    async def _allowed(self, route: Route, request: Request, caller: Caller) -> Caller:
        if route.scope and route.scope not in caller.scopes:
            raise Forbidden(f"the key lacks the scope {route.scope}")
        if caller.rejecting and route.load is Load.CREATE:
            raise Forbidden("the tenant accepts nothing new", code="tenant_suspended")
        wanted = request.header(ADMIN_HEADER)
        return caller if wanted is None else await acting_for(self.service.desk, caller, wanted)

    async def _call(
        self, route: Route, found: Found, request: Request, receive: Receive, caller: Caller
    ) -> Call[Any, Any]:
        common = Common(route.selects, route.tries)
        query = read_query(request.query_string, route.query, common=common)
        if getattr(query, "cursor", None) == BEGINNING:
            query.cursor = None  # type: ignore[attr-defined]
        check_fields(route, common.fields or getattr(query, "fields", ()))
        raw = b""
        body: Any = None
        unread: dict[int, Trouble] = {}
        if route.body is not None:
            raw = await read_body(receive, request, most=route.body_max)
            # Reading a large body takes long enough for others to notice.
            body, unread = await aside_if_large(len(raw), _body, route, request, raw)
        elif route.method == "DELETE":
            await refuse_body(receive, request)
        # What could not be read belongs to the request as well.
        told = raw if unread else body
        key = read_idempotency_key(route, request, told if raw else None, caller.settings)
        return Call(
            service=self.service,
            route=route,
            request=request,
            caller=caller,
            path=dict(zip(route.parameters, found.values, strict=True))
            if found.values
            else NO_PLACES,
            query=query,
            body=body,
            raw=raw,
            key=key,
            unread=unread,
            fields=common.fields,
            leaves=Leaves(self.service.cursors),
            only_try=common.only_try or getattr(query, "validate_only", False),
        )

    def _problem(self, error: Exception, request: Request) -> Reply:
        trouble = trouble_of(error)
        if not isinstance(error, EXPECTED) or isinstance(error, Bug):
            self.service.telemetry.event(
                "request.failed",
                level="error",
                error=error,
                request_id=request.id,
                method=request.method,
                path=request.path[:200],
            )
        return Reply(
            status=trouble.status,
            content=body_of(trouble, request.id),
            media=MEDIA_TYPE,
            headers=trouble.headers,
        )


def _told(route: Route | None, request: Request, reply: Reply) -> dict[str, str]:
    """The headers of an answer, good or bad."""
    retired = {} if route is None or route.retired is None else route.retired.headers()
    return {**request.told, **retired, **reply.headers}


def held_for(pause: float, held_back: int) -> float:
    """How long a refusal is held back, so that ever more clients do not make ever more of them."""
    return max(pause, min(held_back / REFUSALS_PER_SECOND, HELD_SECONDS_MAX))


def _doubled(pairs: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Names of header fields that came more than once."""
    seen: set[bytes] = set()
    return frozenset(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _body(route: Route, request: Request, raw: bytes) -> tuple[Any, dict[int, Trouble]]:
    check_media(request, route.media, raw, unpacks=route.unpacks)
    if route.unpacks:
        raw = unpacked(request, raw, most=route.body_max)
    if route.body is bytes:
        if not raw and not route.body_optional:
            raise Trouble("invalid_parameter", "expected a body, got nothing")
        return raw, {}
    if not raw:
        if not route.body_optional:
            _missing()
        return convert({}, route.body), {}
    if route.item is not None:
        return convert_each(read_json(raw), route.body, route.item)
    return convert(read_json(raw), route.body), {}


def _missing() -> NoReturn:
    raise Trouble("malformed_json", "expected a JSON body, got nothing")


async def _send(send: Send, reply: Reply, request: Request, receive: Receive) -> None:
    body = b"" if reply.stream is not None else reply.body()
    headers = [
        *SECURITY,
        (b"request-id", request.id.encode()),
        *(
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in reply.headers.items()
        ),
    ]
    if body or reply.stream is not None or reply.status not in (204, 304):
        headers.append((b"content-type", reply.media.encode()))
    if reply.stream is None:
        headers.append((b"content-length", str(len(body)).encode()))
    start = {"type": "http.response.start", "status": reply.status, "headers": headers}
    if reply.stream is None:
        await send(start)
        content = b"" if request.method == "HEAD" else body
        await send({"type": "http.response.body", "body": content})
        return
    try:
        await send(start)
        await while_there(receive, _pump(send, reply.stream))
    finally:  # whether or not anything of it was sent
        await reply.stream.aclose()


async def _pump(send: Send, stream: Stream) -> None:
    async for piece in stream.pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


ANYBODY = Caller(
    key="",
    name="",
    kind="",
    tenant=None,  # type: ignore[arg-type]  # a public operation has no tenant and never asks
    slug="",
    timezone="UTC",
    scopes=frozenset(),
    queues=None,
    expires_at=None,
    quotas={},
    settings={},
)
