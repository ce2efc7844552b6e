"""Runs: what they were given, and what they returned."""

import msgspec

from betimes.api.call import Call, Reply
from betimes.api.finding import find_run
from betimes.api.ranging import RANGE, ranged
from betimes.api.route import NoQuery, Route
from betimes.api.run_shapes import hidden_in, reference_in
from betimes.api.shaping import missing
from betimes.api.targets import redaction_of
from betimes.domain.errors import NotFound
from betimes.domain.scopes import Scope
from betimes.ops.blobs import read_reference
from betimes.ops.history import with_payload
from betimes.target.redact import UNREADABLE


async def payload(call: Call[NoQuery, None]) -> Reply:
    """What a run was given."""
    view = await with_payload(call.service.desk, call.tenant, await find_run(call))
    content = view.run.payload
    if content is None and (reference := view.run.options.get("payload_ref")):
        content = await _referred(call, str(reference), "payload")
    return _raw(call, content, "payload")


async def result(call: Call[NoQuery, None]) -> Reply:
    """What a run has returned."""
    view = await find_run(call)
    content = view.run.result
    if (reference := reference_in(content)) is not None:
        content = await _referred(call, reference, "result")
    return _raw(call, content, "result")


async def _referred(call: Call[NoQuery, None], reference: str, what: str) -> bytes:
    """What a reference stands for, as long as it is kept."""
    try:
        return await read_reference(call.service.desk, call.tenant, reference)
    except NotFound:
        raise missing(what, call.path["run"]) from None


def _raw(call: Call[NoQuery, None], content: bytes | None, what: str) -> Reply:
    if content is None:
        raise missing(what, call.path["run"])
    try:
        value = msgspec.json.decode(content)
    except UNREADABLE:
        return ranged(call.request, Reply(content=content, media="application/octet-stream"))
    hidden = hidden_in(value, redaction_of(call))
    shown = content if hidden == value else msgspec.json.encode(hidden)
    return ranged(call.request, Reply(content=shown))


ROUTES = (
    Route(
        method="GET",
        path="/v1/runs/{run}/payload",
        name="runs.payload",
        says="What a run was given, as it is.",
        handler=payload,
        scope=Scope.PAYLOADS_READ,
        answers={200: bytes, 206: bytes},
        answer_media="*/*",
        sends=RANGE,
        headers=("Accept-Ranges", "Content-Range"),
        problems=("not_found", "retention_expired", "range_not_satisfiable"),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/result",
        name="runs.result",
        says="What a run has returned, as it is.",
        handler=result,
        scope=Scope.PAYLOADS_READ,
        answers={200: bytes, 206: bytes},
        answer_media="*/*",
        sends=RANGE,
        headers=("Accept-Ranges", "Content-Range"),
        problems=("not_found", "retention_expired", "range_not_satisfiable"),
    ),
)
