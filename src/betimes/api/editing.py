"""Edits of definitions: what the caller must have seen."""

from typing import Any

from betimes.api.call import Call
from betimes.api.etag import expected_revision, stale, wants_none
from betimes.api.problem import Trouble
from betimes.domain.job import Job
from betimes.wire import jobs as wire


def check_preconditions(call: Call[wire.ReplaceOptions, Any], current: Job | None) -> None:
    """Refuse to replace blindly: the caller says what it has seen, or that it does not care."""
    request = call.request
    if wants_none(request):
        if current is not None:
            raise stale(current.revision)
        return
    said = request.header(b"if-match") is not None
    if not said and not call.query.force:
        raise Trouble(
            "precondition_required",
            "expected If-Match, If-None-Match: * or force=true for a replacement",
        )
    if said:
        expected_revision(request, None if current is None else current.revision)


def require_match(call: Call[Any, Any]) -> None:
    """Refuse an edit without If-Match where the tenant demands one."""
    required = call.caller.settings.get("require_if_match") is True
    if required and call.request.header(b"if-match") is None:
        raise Trouble("precondition_required", "expected If-Match: the tenant demands it")
