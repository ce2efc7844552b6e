"""Redirects: requests of their own, checked like the first and within the time of one attempt."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urljoin

from betimes.domain.clock import Clock
from betimes.domain.errors import Refused
from betimes.target.answer import Answer, NoAnswer, Request, Trouble
from betimes.target.url import UrlPolicy, read_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEEP_METHOD = frozenset({307, 308})
NOT_TO_STRANGERS = frozenset({"authorization", "cookie", "betimes-lease"})
OF_BODY = frozenset({"content-type"})


class Sends(Protocol):
    """The client, or whoever stands in for it."""

    async def send(self, request: Request) -> Answer | NoAnswer:
        """Send one request."""
        ...


Sign = Callable[[str], list[str]]
"""The lines that identify and sign a request without a body, for an origin."""


@dataclass(slots=True, kw_only=True)
class Way:
    """The request that is sent next, and how far it may go on from there."""

    request: Request
    sign: Sign
    until: float
    """When the time of all of them together is over."""
    redirects: int
    policy: UrlPolicy


async def follow(
    client: Sends, clock: Clock, way: Way, result: Answer | NoAnswer
) -> Answer | NoAnswer:
    """Go where an answer leads."""
    for _ in range(way.redirects):
        if not isinstance(result, Answer) or result.status not in REDIRECTS:
            break
        if (location := result.header("location")) is None:
            break
        try:
            way.request = redirected(way.request, result.status, location, way.policy, way.sign)
        except (Refused, ValueError) as refused:
            return NoAnswer(
                trouble=Trouble.REDIRECT,
                detail=f"it was redirected where we may not go: {refused}",
                address=result.address,
                timings=result.timings,
            )
        result = await send_in_time(client, clock, way)
    return result


async def send_in_time(client: Sends, clock: Clock, way: Way) -> Answer | NoAnswer:
    """Send what is next in the time that is left."""
    left = way.until - clock.monotonic()
    if left <= 0:
        return NoAnswer(trouble=Trouble.TIMEOUT, detail="its time was over between requests")
    way.request = replace(way.request, patience=replace(way.request.patience, total=left))
    return await client.send(way.request)


def redirected(
    request: Request, status: int, location: str, policy: UrlPolicy, sign: Sign
) -> Request:
    """The request a redirect asks for, checked like one that a user wrote."""
    url = read_url(urljoin(str(request.url), location), policy, pointer="")
    headers, method, body, tls = request.headers, request.method, request.body, request.tls
    if url.origin != request.url.origin:
        headers = [line for line in headers if not _is_private(line, request.private)]
        tls = None if tls is None else replace(tls, certificate=None, key=None)
    if status not in KEEP_METHOD and method not in ("GET", "HEAD"):
        method = "GET"
        if body is not None:
            body, fresh = None, sign(url.origin)
            ours = {_name(line) for line in fresh}
            headers = [line for line in headers if _name(line) not in ours | OF_BODY] + fresh
    return replace(request, url=url, headers=headers, method=method, body=body, tls=tls)


def _is_private(line: str, private: frozenset[str]) -> bool:
    name = _name(line)
    return name in NOT_TO_STRANGERS or name in private


def _name(line: str) -> str:
    return line.partition(":")[0].lower()


def complaint_of(origin: str, status: int, redirects: int) -> str:
    """What is said of an answer that was none of the good ones."""
    if status in REDIRECTS and redirects:
        return f"{origin} answered {status}, expected an end after {redirects} redirects"
    return f"{origin} answered {status}"
