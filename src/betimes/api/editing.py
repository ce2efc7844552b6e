"""Edits of definitions: what the caller must have seen."""

from typing import Any

from betimes.api.call import Call, Request
from betimes.api.etag import expected_revision, stale, wants_none
from betimes.api.problem import Trouble


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
