"""Callbacks of jobs and runs between wire and domain."""

from collections.abc import Sequence
from typing import Any

from betimes.domain.callback import ENDS, EVENTS_OF
from betimes.domain.errors import Invalid
from betimes.domain.ids import from_text
from betimes.target.url import UrlPolicy, read_url
from betimes.wire import jobs as wire


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
