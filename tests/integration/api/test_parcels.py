"""Parcels over HTTP: one lease for many runs, ends in sets, and what hostile workers try.

Long because all of it is said with the same few helpers.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from api_kit import Client, Served
from betimes.api import leasing, parcels
from betimes.domain.ids import shard_of
from parcel_kit import (
    NOBODY,
    RETRY,
    enqueue,
    ids,
    leased,
    parcels_left,
    state_of,
    statements,
    success,
    text,
    told,
    worker_of,
)
from worker_kit import reap, rows


async def test_a_parcel_is_leased_and_ends_as_a_set(served: Served, admin: Client) -> None:
    made = await enqueue(admin, 300, payload={"n": 1}, tags={"team": "a"})
    client, worker = await worker_of(served)
    found = await leased(client, worker)
    assert sorted(text(run) for parcel in found["parcels"] for run in ids(parcel)) == sorted(made)
    assert len(found["definitions"]) == 1, "what they have in common is told once"
    (definition,) = found["definitions"]
    assert (definition["handler"], definition["max_attempts"]) == ("noop", 5)
    assert definition["tags"] == {"team": "a"}
    assert {run[5]["n"] for parcel in found["parcels"] for run in parcel["runs"]} == {1}
    answers = await told(client, worker, *map(success, found["parcels"]))
    assert answers == [{"lease_id": one["lease_id"]} for one in found["parcels"]]
    page = (await admin("GET", "/v1/runs?state=succeeded&limit=1000")).json
    assert len(page["items"]) == 300
    assert await parcels_left(served) == 0


async def test_a_definition_is_told_once_also_where_its_queue_says_how_to_retry(
    served: Served, admin: Client
) -> None:
    changed = await admin(
        "PUT", "/v1/queues/default", {"default_retry": {**RETRY, "max_attempts": 7}}
    )
    assert changed.status in (200, 201), changed.body
    await enqueue(admin, 300, retry=None)
    client, worker = await worker_of(served)
    found = await leased(client, worker)
    assert sum(len(parcel["runs"]) for parcel in found["parcels"]) == 300
    assert [one["max_attempts"] for one in found["definitions"]] == [7]


async def test_a_part_of_a_parcel_may_be_reported(served: Served, admin: Client) -> None:
    """The rest goes on being held; each end is written once, whatever is told again."""
    await enqueue(admin, 10)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    runs = ids(parcel)
    failing = {"run": runs[4], "action": "fail", "error": {"type": "E", "message": "no"}}
    part = {**success(parcel, runs[:4]), "ended": [failing]}
    for _ in range(2):
        assert await told(client, worker, part) == [{"lease_id": parcel["lease_id"]}]
    assert (await state_of(admin, runs[0]))["state"] == "succeeded"
    assert (await state_of(admin, runs[4]))["state"] == "retry_wait"
    assert (await state_of(admin, runs[5]))["state"] == "running"
    attempts = await rows(served.desk.database, "SELECT FROM betimes.attempts")
    assert len(attempts) == 1
    beat = {"parcels": [{"lease_id": parcel["lease_id"], "runs": runs[5:]}]}
    answer = (await client("POST", f"/v1/workers/{worker}/heartbeat", beat)).json
    assert [one["lease_id"] for one in answer["extended"]] == [parcel["lease_id"]]
    assert await told(client, worker, success(parcel, runs[5:])) == [
        {"lease_id": parcel["lease_id"]}
    ]
    assert await parcels_left(served) == 1, "that of the retry"


async def test_results_are_told_in_the_order_of_the_runs(served: Served, admin: Client) -> None:
    await enqueue(admin, 3)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    await told(client, worker, success(parcel, results=[{"n": 0}, None, [2]]))
    found = [(await state_of(admin, run)).get("result") for run in ids(parcel)]
    assert found == [{"n": 0}, None, [2]]


async def test_one_of_the_runs_is_known_by_parcel_and_id(served: Served, admin: Client) -> None:
    """The verbs for single leases take it, without a seal of its own."""
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    first, second = ids(parcel)
    lease = f"{parcel['lease_id']}.{text(first)}"
    assert (await client("POST", f"/v1/leases/{lease}/progress", {"percent": 5})).status == 202
    assert (await client("POST", f"/v1/leases/{lease}/complete", {"result": 1})).status == 200
    assert (await state_of(admin, second))["state"] == "running"
    alone = await client("POST", f"/v1/leases/{parcel['lease_id']}/complete", {})
    assert alone.status == 404, "a parcel is no run"


async def test_whose_end_is_wanted_is_told_with_the_heartbeat(
    served: Served, admin: Client
) -> None:
    await enqueue(admin, 3)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    await admin("POST", f"/v1/runs/{text(ids(parcel)[1])}/cancel")
    beat = {"parcels": [{"lease_id": parcel["lease_id"], "runs": ids(parcel)}], "busy": 3}
    answer = (await client("POST", f"/v1/workers/{worker}/heartbeat", beat)).json
    assert answer["commands"] == [
        {"type": "cancel", "lease_id": parcel["lease_id"], "run": ids(parcel)[1]}
    ]
    shown = (await admin("GET", f"/v1/workers/{worker}")).json
    assert shown["busy"] == 3


async def test_a_time_limit_is_no_type_of_error(served: Served, admin: Client) -> None:
    await enqueue(admin, 1, retry={**RETRY, "max_attempts": 1})
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    (run,) = ids(parcel)
    end = {"run": run, "action": "time_out", "for": "PT2S"}
    (answer,) = await told(client, worker, {"lease_id": parcel["lease_id"], "ended": [end]})
    assert answer["dead"] == [run]
    attempts = await admin("GET", f"/v1/runs/{text(run)}/attempts")
    assert [one["outcome"] for one in attempts.json["items"]] == ["timed_out"]


async def test_what_a_worker_says_of_times_is_kept_within_what_can_be(
    served: Served, admin: Client
) -> None:
    await enqueue(admin, 1)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    far: dict[str, Any] = {"started_at": "1970-01-01T00:00:00Z", "ended_at": "2999-01-01T00:00:00Z"}
    await told(client, worker, success(parcel, **far))
    shown = await state_of(admin, ids(parcel)[0])
    assert shown["state"] == "succeeded"
    now = served.service.now()
    (row,) = await rows(served.desk.database, "SELECT started_at, finished_at FROM betimes.runs")
    assert now - timedelta(minutes=5) < row["started_at"] <= row["finished_at"]
    assert row["finished_at"] < now + timedelta(minutes=5)


# --- hostile workers


def forged(token: str) -> str:
    """The same with one bit of its fence changed."""
    raw = token.removeprefix("lea_")
    data = bytearray(urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
    data[36] ^= 1
    return "lea_" + urlsafe_b64encode(data).decode().rstrip("=")


async def test_a_forged_lease_ends_nothing(served: Served, admin: Client) -> None:
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    for token in (forged(parcel["lease_id"]), "lea_x", "lea_" + "A" * 100):
        bad = {**parcel, "lease_id": token}
        assert await told(client, worker, success(bad)) == [
            {"lease_id": token, "lost": ids(parcel)}
        ]
        beat = {"parcels": [{"lease_id": token}]}
        answer = (await client("POST", f"/v1/workers/{worker}/heartbeat", beat)).json
        assert (answer["lost"], answer["extended"]) == ([token], [])
    assert (await state_of(admin, ids(parcel)[0]))["state"] == "running"


async def test_a_parcel_of_another_tenant_is_lost(served: Served, admin: Client) -> None:
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    other = await served.tenant("other")
    stranger = served.client(await served.key(other, kind="wk"))
    theirs = (await stranger("POST", "/v1/workers", {"name": "s"})).json["worker_id"]
    assert await told(stranger, theirs, success(parcel)) == [
        {"lease_id": parcel["lease_id"], "lost": ids(parcel)}
    ]
    assert (await state_of(admin, ids(parcel)[0]))["state"] == "running"


async def test_a_key_bound_to_queues_ends_no_parcel_of_others(
    served: Served, admin: Client
) -> None:
    await enqueue(admin, 1)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    bound, theirs = await worker_of(served, queues=["mail"])
    (answer,) = await told(bound, theirs, success(parcel))
    assert answer["lost"] == ids(parcel)


async def test_a_run_that_is_not_in_the_parcel_is_lost(served: Served, admin: Client) -> None:
    """Not one of somebody else's parcel, not one that nobody knows, and none of it twice."""
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (mine,) = (await leased(client, worker))["parcels"]
    await enqueue(admin, 1)
    (other,) = (await leased(*(await worker_of(served))))["parcels"]
    theirs = ids(other)[0]
    foreign = [NOBODY, theirs]
    report = success(mine, [ids(mine)[0], *foreign, ids(mine)[0]])
    end = {"run": theirs, "action": "cancel"}
    (answer,) = await told(client, worker, {**report, "ended": [end]})
    assert sorted(set(answer["lost"])) == sorted(foreign)
    assert (await state_of(admin, ids(mine)[0]))["state"] == "succeeded"
    assert (await state_of(admin, ids(mine)[1]))["state"] == "running"
    assert (await state_of(admin, theirs))["state"] == "running"


async def test_a_stale_fence_ends_nothing(served: Served, admin: Client) -> None:
    await enqueue(admin, 3)
    client, worker = await worker_of(served)
    (old,) = (await leased(client, worker))["parcels"]
    await reap(served.desk.database, served.service.clock.now() + timedelta(hours=2))
    (new,) = (await leased(client, worker))["parcels"]
    assert (old["fence"], new["fence"], new["attempt"]) == (1, 2, 2)
    first, second = await told(
        client, worker, success(old, results=[1, 1, 1]), success(new, results=[2, 2, 2])
    )
    assert (sorted(first["lost"]), second.get("lost")) == (sorted(ids(old)), None)
    shown = await state_of(admin, ids(new)[0])
    assert (shown["result"], shown["attempt"]) == (2, 2)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"parcels": []}, 422, None),
        ({"parcels": [{"lease_id": "lea_x", "succeeded": [{"runs": []}]}]}, 422, None),
        ({"parcels": [{"lease_id": "lea_x", "succeeded": [{"runs": ["x"]}]}]}, 422, None),
        ({"parcels": [{"lease_id": "lea_x", "more": 1}]}, 422, None),
        (
            {"parcels": [{"lease_id": "lea_xx", "succeeded": [{"runs": [NOBODY] * 600}] * 2}]},
            None,
            "batch_too_large",
        ),
    ],
)
async def test_what_is_no_report_is_refused(
    served: Served, body: Any, status: int | None, code: str | None
) -> None:
    client, _ = await worker_of(served)
    answer = await client("POST", "/v1/leases/reports", body)
    assert 400 <= answer.status < 500, answer.body
    assert status in (None, answer.status) or answer.status == 400
    assert code in (None, answer.code)


async def test_as_many_results_as_runs(served: Served, admin: Client) -> None:
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    body = {"parcels": [success(parcel, results=[1])]}
    answer = await client("POST", "/v1/leases/reports", body)
    assert (answer.status // 100, answer.code) == (4, "invalid_parameter")
    large = {"parcels": [success(parcel, results=["x" * 300_000, 1])]}
    refused = await client("POST", "/v1/leases/reports", large)
    assert refused.code == "payload_too_large"
    assert (await state_of(admin, ids(parcel)[0]))["state"] == "running"


async def test_two_requests_of_one_worker_do_not_lease_a_suspect_beside_others(
    served: Served, admin: Client
) -> None:
    """What it holds is looked at under a lock: one gets the suspect, the other nothing."""
    (run,) = await enqueue(admin, 1)
    database = served.desk.database
    for _ in range(3):
        client, worker = await worker_of(served)
        await leased(client, worker)
        await reap(database, served.service.clock.now() + timedelta(hours=2))
    await enqueue(admin, 5)
    client, worker = await worker_of(served)
    both = await asyncio.gather(leased(client, worker), leased(client, worker))
    found = [[text(one) for one in ids(parcel)] for got in both for parcel in got["parcels"]]
    assert found == [[run]]


# --- budgets


@pytest.mark.parametrize("failing", [False, True])
async def test_ends_are_written_with_a_constant_number_of_statements(
    served: Served, admin: Client, *, failing: bool
) -> None:
    """For each shard: as many for 500 ends as for 5."""
    counts: dict[int, float] = {}
    for count in (5, 500):
        await enqueue(admin, count)
        client, worker = await worker_of(served)
        found = (await leased(client, worker))["parcels"]
        ends = [
            {"run": run, "action": "fail", "error": {"type": "E", "message": ""}}
            for parcel in found
            for run in ids(parcel)
        ]
        reports = [
            {
                "lease_id": parcel["lease_id"],
                "ended": [end for end in ends if end["run"] in set(ids(parcel))],
            }
            if failing
            else success(parcel)
            for parcel in found
        ]
        with statements() as said:
            await told(client, worker, *reports)
        shards = {shard_of(UUID(run)) for parcel in found for run in ids(parcel)}
        assert said
        counts[count] = len(said) / len(shards)
        await rows(served.desk.database, "DELETE FROM betimes.parcels RETURNING id")
    assert counts[500] <= counts[5] + 2, counts
    if not failing:
        assert counts[500] <= 5, "hold, finish, and the clock; nothing for each run"


async def test_one_seal_for_a_parcel_however_many_runs_it_holds(
    served: Served, admin: Client
) -> None:
    await enqueue(admin, 500)
    client, worker = await worker_of(served)
    seals = 0
    real = leasing._seal

    def counted(*given: Any) -> bytes:
        nonlocal seals
        seals += 1
        return real(*given)

    with patch.object(leasing, "_seal", counted), patch.object(parcels, "with_run", None):
        found = (await leased(client, worker))["parcels"]
        assert seals == len(found) <= 16
        await told(client, worker, *map(success, found))
        assert seals == 2 * len(found)
