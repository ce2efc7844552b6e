"""Long work over HTTP: begun, watched, stopped; actions over many runs; moving a run."""

from typing import Any

import pytest

from api_kit import Answer, Client, Served
from betimes.store.pool import Lane

LATER = {"handler": "h", "delay": "PT1H"}


async def enqueued(admin: Client, number: int = 3, **more: Any) -> list[str]:
    items = [{**LATER, **more} for _ in range(number)]
    made = await admin("POST", "/v1/runs/batch", {"items": items})
    assert made.status == 202, made.body
    return [item["id"] for item in made.json["items"]]


async def states(admin: Client, runs: list[str]) -> list[str]:
    return [(await admin("GET", f"/v1/runs/{run}")).json["state"] for run in runs]


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.json["errors"]]


async def test_what_a_filter_means_is_cancelled_run_by_run(served: Served, admin: Client) -> None:
    runs = await enqueued(admin, queue="mail")
    (other,) = await enqueued(admin, 1, queue="other")
    asked: dict[str, Any] = {"action": "cancel", "filter": {"queue": ["mail"]}}
    dry = await admin("POST", "/v1/runs/bulk", {**asked, "dry_run": True})
    assert (dry.status, dry.json) == (200, {"matched": 3, "dry_run": True})
    wrong = await admin("POST", "/v1/runs/bulk", {**asked, "confirm_count": 2})
    assert (wrong.status, wrong.code) == (422, "confirm_count_mismatch")
    begun = await admin("POST", "/v1/runs/bulk", {**asked, "confirm_count": 3})
    assert begun.status == 202, begun.body
    place = begun.headers["location"]
    assert (await admin("GET", place)).json["state"] == "pending"
    assert await served.operate() > 0
    done = (await admin("GET", place)).json
    assert done["state"] == "succeeded"
    assert done["progress"] == {"done": 3, "total": 3}
    assert done["result"] == {"changed": 3, "refused": 0}
    assert await states(admin, runs) == ["cancelled"] * 3
    assert await states(admin, [other]) == ["scheduled"]
    acts = (await admin("GET", f"/v1/audit?resource={runs[0]}")).json["items"]
    assert [act["action"] for act in acts] == ["runs.bulk"]
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True
    over = await admin("POST", f"{place}/cancel")
    assert (over.status, over.code) == (409, "invalid_state")


async def test_runs_by_name_are_retried_and_what_refuses_is_counted(
    served: Served, admin: Client
) -> None:
    runs = await enqueued(admin, 2)
    await admin("POST", f"/v1/runs/{runs[0]}/cancel")
    begun = await admin("POST", "/v1/runs/bulk", {"action": "retry", "ids": runs})
    await served.operate()
    done = (await admin("GET", begun.headers["location"])).json
    assert (done["result"]["changed"], done["result"]["refused"]) == (1, 1)
    assert [one["code"] for one in done["result"]["errors"]] == ["invalid_state"]
    assert await states(admin, runs) == ["queued", "scheduled"]


async def test_an_operation_that_is_cancelled_does_nothing_more(
    served: Served, admin: Client
) -> None:
    runs = await enqueued(admin)
    asked = {"action": "cancel", "ids": runs, "rate_per_second": 0.001}
    place = (await admin("POST", "/v1/runs/bulk", asked)).headers["location"]
    await served.operate()
    assert (await admin("GET", place)).json["progress"] == {"done": 1, "total": 3}
    assert await served.operate() == 0, "the rate allows the next one much later"
    stopped = await admin("POST", f"{place}/cancel")
    assert (stopped.status, stopped.json["state"]) == (200, "cancelled")
    assert (await admin("POST", f"{place}/cancel")).status == 200
    assert await states(admin, runs) == ["cancelled", "scheduled", "scheduled"]
    listed = (await admin("GET", "/v1/operations?state=cancelled&limit=1")).json
    assert [one["id"] for one in listed["items"]] == [stopped.json["id"]]
    again = await admin("GET", f"/v1/operations?state=cancelled&cursor={listed['next_cursor']}")
    assert again.json["items"] == []


async def test_a_mistake_of_ours_fails_the_operation_once(served: Served, admin: Client) -> None:
    (run,) = await enqueued(admin, 1)
    place = (await admin("POST", "/v1/runs/bulk", {"action": "cancel", "ids": [run]})).headers
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.operations SET request = '{}'")
    with pytest.raises(KeyError):
        await served.operate()
    told = (await admin("GET", place["location"])).json
    assert (told["state"], told["error"]["code"]) == ("failed", "internal")
    assert await served.operate() == 0, "nobody claims it again"


async def test_an_operation_has_one_id_and_one_meaning(served: Served, admin: Client) -> None:
    runs = await enqueued(admin, 2)
    chosen = "op_01JD00000000000000000000A0"
    asked = {"action": "replay", "ids": runs[:1], "operation_id": chosen}
    first, second = [await admin("POST", "/v1/runs/bulk", asked) for _ in range(2)]
    assert (first.status, second.status) == (202, 202)
    assert first.json["id"] == second.json["id"] == chosen
    other = await admin("POST", "/v1/runs/bulk", {**asked, "ids": runs[1:]})
    assert (other.status, other.code) == (409, "already_exists")
    assert pointers(other) == ["/operation_id"]
    await served.operate()
    counts = [
        len((await admin("GET", f"/v1/runs{which}")).json["items"])
        for which in ("", "?state=scheduled")
    ]
    assert counts == [1, 2], "one replay"


async def test_what_makes_no_sense_is_refused(admin: Client) -> None:
    neither = await admin("POST", "/v1/runs/bulk", {"action": "cancel"})
    assert (neither.status, pointers(neither)) == (400, ["/filter"])
    no_priority = await admin("POST", "/v1/runs/bulk", {"action": "set_priority", "filter": {}})
    assert (no_priority.status, pointers(no_priority)) == (400, ["/priority"])
    unknown = await admin("POST", "/v1/runs/bulk", {"action": "explode", "filter": {}})
    assert (unknown.status, pointers(unknown)) == (400, ["/action"])


async def test_a_waiting_run_moves_in_time_queue_and_priority(
    served: Served, admin: Client
) -> None:
    (run,) = await enqueued(admin, 1)
    moved = await admin(
        "PATCH", f"/v1/runs/{run}", {"due_at": "2020-01-01T00:00:00Z", "queue": "fast"}
    )
    assert moved.status == 200, moved.body
    assert (moved.json["state"], moved.json["queue"]) == ("queued", "fast")
    urgent = await admin("PATCH", f"/v1/runs/{run}", {"priority": 9})
    assert (urgent.status, urgent.json["priority"]) == (200, 9)
    worker = (await admin("POST", "/v1/workers", {"name": "w", "queues": ["fast"]})).json
    lease = await admin("POST", f"/v1/workers/{worker['worker_id']}/lease", {"wait": 0})
    assert [one["run_id"] for one in lease.json["runs"]] == [run], "it is there once"
    held = await admin("PATCH", f"/v1/runs/{run}", {"priority": 1})
    assert (held.status, held.code) == (409, "invalid_state")
    nothing = await admin("PATCH", f"/v1/runs/{run}", {})
    assert nothing.status == 400
    bad = await admin("PATCH", f"/v1/runs/{run}", {"due_at": "tomorrow"})
    assert (bad.status, pointers(bad)) == (400, ["/due_at"])
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("PATCH", f"/v1/runs/{run}", {"priority": 1})).code == "scope_missing"


async def test_a_planned_run_takes_queue_and_priority_from_its_row(admin: Client) -> None:
    (run,) = await enqueued(admin, 1)
    moved = await admin("PATCH", f"/v1/runs/{run}", {"queue": "slow", "priority": 1})
    assert moved.status == 200, moved.body
    assert (moved.json["state"], moved.json["queue"]) == ("scheduled", "slow")
