"""Callbacks of jobs and runs between wire and domain."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from betimes.api.call import Call
from betimes.domain.callback import ENDS, EVENTS_OF
from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import from_text
from betimes.ops.endpoints import get_endpoint
from betimes.target.url import UrlPolicy, read_url
from betimes.wire import jobs as wire


class Telling(Protocol):
    """A job or a run, as far as it tells somebody how it ended."""

    notify: list[wire.Callback]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Which endpoints a request names that are not there."""

    absent: frozenset[str]

    def check(self, asked: Telling) -> None:
        """Refuse callbacks to them: nobody would be told, or notice that.

        Raises:
            Invalid: there is no such endpoint of the tenant.

        """
        for one in asked.notify:
            if one.url is None and one.endpoint in self.absent:
                raise Invalid(
                    f"expected an endpoint that is there, got {one.endpoint!r}", pointer="/notify"
                )


async def listeners_of(call: Call[Any, Any], asked: Iterable[Telling]) -> Listeners:
    """Look for every endpoint that is named, once."""
    said = [one for each in asked for one in each.notify if one.url is None]
    absent = set[str]()
    for text in sorted({one.endpoint for one in said if one.endpoint is not None}):
        try:
            endpoint = from_text("ep", text)
        except Invalid:
            continue  # refused where it is read, with its place
        try:
            await get_endpoint(call.service.desk, call.tenant, endpoint)
        except NotFound:
            absent.add(text)
    return Listeners(frozenset(absent))


async def check_listeners(call: Call[Any, Any], asked: Telling) -> None:
    """Refuse callbacks of one thing to endpoints that are not there."""
    (await listeners_of(call, [asked])).check(asked)


def callbacks_of(asked: Sequence[wire.Callback], policy: UrlPolicy) -> list[dict[str, Any]]:
    """Whom to tell how a run ended, as it is kept: checked, and only what was said."""
    return [_stored(one, policy, f"/notify/{place}") for place, one in enumerate(asked)]


def _stored(asked: wire.Callback, policy: UrlPolicy, pointer: str) -> dict[str, Any]:
    if (asked.url is None) == (asked.endpoint is None):
        raise Invalid("expected a url or an endpoint", pointer=pointer)
    told: dict[str, Any] = {}
    if asked.url is not None:
        told["url"] = str(read_url(asked.url, policy, pointer=f"{pointer}/url"))
    if asked.endpoint is not None:
        _check_endpoint(asked.endpoint, f"{pointer}/endpoint")
        told["endpoint"] = asked.endpoint
    wanted = [end for end in EVENTS_OF if end in asked.on]
    if wanted and not set(ENDS) <= set(wanted):
        told["on"] = wanted
    return told


def _check_endpoint(text: str, pointer: str) -> None:
    try:
        from_text("ep", text)
    except Invalid:
        raise Invalid(
            f"expected the id of an endpoint, got {text[:50]!r}", pointer=pointer
        ) from None
