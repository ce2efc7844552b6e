"""Nothing that a request asks for holds the event loop for long."""

from typing import Any

import pytest

from api_kit import Client
from held_kit import CALLS_MAX, watched_loop

COUNTED = "FREQ=SECONDLY;COUNT={};BYHOUR=21;BYMINUTE=30;BYSECOND=2"
"""Once a day. Who walks to the last fire to know whether there is one walks for years."""
NAMES = [f"n{place}" for place in range(1_000)]
GRAPH = {
    "nodes": {
        name: {"handler": "h", "needs": NAMES[max(0, place - 100) : place]}
        for place, name in enumerate(NAMES)
    }
}


def ruled(count: int) -> dict[str, Any]:
    return {"schedule": {"type": "rrule", "expr": COUNTED.format(count)}}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/schedules/preview", ruled(3_000), 200),
        ("POST", "/v1/jobs", {**ruled(3_000), "handler": "h"}, 201),
        ("PUT", "/v1/workflows/wide", GRAPH, 201),
    ],
    ids=["preview", "job", "workflow"],
)
async def test_a_costly_request_lets_others_have_their_turn(
    admin: Client, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    """The cost of the first two grew with COUNT, which may be 100,000."""
    assert (await admin("GET", "/healthz")).status == 200
    with watched_loop() as held:
        assert (await admin(method, path, body)).status == status
    assert held.most <= CALLS_MAX
