"""Edits of definitions: what the caller must have seen."""

from collections.abc import Awaitable, Callable
from typing import Any

from betimes.api.call import Call, Reply, Request
from betimes.api.etag import expected_revision, names_revision, stale, wants_none
from betimes.api.problem import Trouble
from betimes.domain.errors import Contended, VersionMismatch

EDITS_MAX = 50
"""So often an edit is made anew because others came between reading and writing."""


def check_preconditions(request: Request, current: int | None, *, force: bool) -> None:
    """Refuse to replace blindly: the caller says what it has seen, or that it does not care."""
    if wants_none(request):
        if current is not None:
            raise stale(current, header="If-None-Match")
        return
    if request.header(b"if-match") is not None:
        expected_revision(request, current)
    elif not force:
        raise Trouble(
            "precondition_required",
            "expected If-Match, If-None-Match: * or force=true for a replacement",
        )


def require_match(call: Call[Any, Any]) -> None:
    """Refuse an edit without If-Match where the tenant demands one."""
    required = call.caller.settings.get("require_if_match") is True
    if required and call.request.header(b"if-match") is None:
        raise Trouble("precondition_required", "expected If-Match: the tenant demands it")


async def repeated(handle: Callable[[], Awaitable[Reply]], request: Request) -> Reply:
    """Handle a request; an edit that others came between is made anew, from what is there now.

    An edit reads, merges and writes over the revision it has read. Whoever names the revision it
    has seen is refused when that is not there any more. Whoever does not name one has no opinion on
    it: nothing of the transaction was committed, so the edit is made again.
    """
    for _ in range(EDITS_MAX):
        try:
            return await handle()
        except VersionMismatch:
            if wants_none(request) or names_revision(request):
                raise
    raise Contended("too many others edit the same thing at this moment; nothing was changed")
