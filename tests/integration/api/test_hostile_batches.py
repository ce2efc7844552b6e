"""Batches of schedules that are hard to evaluate: bounded for the request, not only for each."""

from typing import Any

import pytest

from api_kit import Client
from betimes.ops import evaluating
from betimes.ops.evaluating import REQUEST_STEPS_MAX
from betimes.schedule.bounds import EVALUATION_STEPS_MAX

ITEMS = 200
MOST = REQUEST_STEPS_MAX // EVALUATION_STEPS_MAX + 5


def hostile(place: int) -> dict[str, Any]:
    filters = f"BYHOUR=3;BYMINUTE={place // 60};BYSECOND={place % 60}"
    rule = {"type": "rrule", "expr": f"FREQ=SECONDLY;INTERVAL=86399;{filters}"}
    return {"name": f"n{place}", "handler": "h", "schedule": rule, "tags": {"a": "b"}}


@pytest.mark.parametrize("way", ["independent", "atomic", "apply", "import"])
async def test_a_request_is_given_so_many_steps_for_all_its_schedules(
    admin: Client, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred that cannot be evaluated took seconds, in a transaction, and halves again."""
    asked, beside = 0, evaluating.beside

    async def counted(work: Any) -> Any:
        nonlocal asked
        asked += 1
        return await beside(work)

    monkeypatch.setattr(evaluating, "beside", counted)
    jobs = [hostile(place) for place in range(ITEMS)]
    plain = {**hostile(0), "name": "plain", "schedule": "0 3 * * *"}
    if way == "apply":
        body: dict[str, Any] = {"selector": {"tags": {"a": "b"}}, "jobs": jobs}
        told = await admin("POST", "/v1/jobs/apply", body)
        assert told.code == "schedule_too_expensive"
    elif way == "import":
        body = {"format": "betimes/1", "jobs": [*jobs, plain]}
        told = await admin("POST", "/v1/import/betimes", body)
        assert (len(told.json["created"]), len(told.json["skipped"])) == (1, ITEMS), told.body
    else:
        told = await admin("POST", "/v1/jobs/batch", {"items": [*jobs, plain], "mode": way})
        if way == "atomic":
            assert told.code == "schedule_too_expensive"
        else:
            statuses = [one["status"] for one in told.json["items"]]
            assert statuses == [422] * ITEMS + [201]
            error = told.json["items"][0]["error"]
            assert error["errors"][0]["pointer"] == "/items/0/schedule"
    assert asked <= MOST
