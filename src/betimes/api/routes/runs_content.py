"""Runs: what they were given, and what they returned."""

import msgspec

from betimes.api.call import Call, Reply
from betimes.api.finding import find_run
from betimes.api.route import NoQuery, Route
from betimes.api.shaping import missing
from betimes.domain.scopes import Scope


async def payload(call: Call[NoQuery, None]) -> Reply:
    """What a run was given."""
    view = await find_run(call)
    return _raw(view.run.payload, "payload", call.path["run"])


async def result(call: Call[NoQuery, None]) -> Reply:
    """What a run has returned."""
    view = await find_run(call)
    return _raw(view.run.result, "result", call.path["run"])


def _raw(content: bytes | None, what: str, run: str) -> Reply:
    if content is None:
        raise missing(what, run)
    try:
        msgspec.json.decode(content)
    except msgspec.DecodeError:
        return Reply(content=content, media="application/octet-stream")
    return Reply(content=content)


ROUTES = (
    Route(
        method="GET",
        path="/v1/runs/{run}/payload",
        name="runs.payload",
        says="What a run was given, as it is.",
        handler=payload,
        scope=Scope.PAYLOADS_READ,
        answers={200: bytes},
        answer_media="*/*",
        problems=("not_found",),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/result",
        name="runs.result",
        says="What a run has returned, as it is.",
        handler=result,
        scope=Scope.PAYLOADS_READ,
        answers={200: bytes},
        answer_media="*/*",
        problems=("not_found",),
    ),
)
