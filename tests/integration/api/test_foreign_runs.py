"""What workers try that name runs which their parcels do not hold, or say again what they said."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from api_kit import Client, Served
from betimes.domain.ids import compose, shard_of
from betimes.ops.leasing import ANSWER_BYTES_MAX
from parcel_kit import (
    RETRY,
    enqueue,
    ids,
    leased,
    parcels_left,
    statements,
    success,
    text,
    told,
    worker_of,
)
from worker_kit import reap, rows


async def fixed_delay_run(admin: Client) -> None:
    """A run whose end has consequences."""
    schedule = {"type": "interval", "every": "PT1H", "mode": "fixed_delay"}
    job = await admin("POST", "/v1/jobs", {"schedule": schedule, "handler": "noop", "retry": RETRY})
    assert (await admin("POST", f"/v1/jobs/{job.json['id']}/run", {})).status == 202


def measured(parcel: dict[str, Any], run: str, value: float) -> dict[str, Any]:
    end = {"run": run, "action": "complete", "metrics": {"n": value}}
    return {"lease_id": parcel["lease_id"], "ended": [end]}


async def metrics_in(served: Served) -> dict[str, Any]:
    found = await rows(served.desk.database, "SELECT run_id, metrics FROM betimes.run_notes")
    return {str(row["run_id"]): json.loads(row["metrics"]) for row in found}


def neighbour(run: str) -> str:
    """A run that nobody knows, in the same shard."""
    return str(compose(1, shard_of(UUID(run)), 7))


@pytest.mark.parametrize("plain", [True, False])
async def test_what_was_measured_is_written_with_the_end_and_never_again(
    served: Served, admin: Client, *, plain: bool
) -> None:
    """Not by who says it again, not about runs of others, and not twice in one report."""
    await (enqueue(admin, 2) if plain else fixed_delay_run(admin))
    client, worker = await worker_of(served)
    (old,) = (await leased(client, worker))["parcels"]
    if not plain:
        await reap(served.desk.database, served.service.clock.now() + timedelta(hours=2))
    (parcel,) = [old] if plain else (await leased(client, worker))["parcels"]
    run, *others = ids(parcel)
    await told(client, worker, measured(parcel, run, 1))
    again = [measured(old, run, 2), measured(parcel, run, 3), measured(parcel, neighbour(run), 4)]
    fresh = [measured(parcel, other, 5) for other in others]
    assert await told(client, worker, *again, *fresh)
    assert await metrics_in(served) == {run: {"n": 1}} | {other: {"n": 5} for other in others}


async def test_a_heartbeat_says_nothing_about_runs_that_the_parcel_does_not_hold(
    served: Served, admin: Client
) -> None:
    await enqueue(admin, 2)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    run = ids(parcel)[0]
    said = {
        one: {"lease_id": f"{parcel['lease_id']}.{text(one)}", "progress": {"message": "x"}}
        for one in (run, neighbour(run))
    }
    beat = {"running": list(said.values())}
    answer = await client("POST", f"/v1/workers/{worker}/heartbeat", beat)
    assert answer.status == 200, answer.body
    noted = await rows(served.desk.database, "SELECT run_id FROM betimes.run_notes")
    assert [str(one["run_id"]) for one in noted] == [run]


async def test_a_heartbeat_survives_the_name_of_a_run_of_another_tenant(
    served: Served, admin: Client
) -> None:
    mine, worker = await worker_of(served)
    other = await served.tenant("other")
    theirs = served.client(await served.key(other, kind="wk"))
    (foreign,) = await enqueue(served.client(await served.key(other)), 1)
    name = (await theirs("POST", "/v1/workers", {"name": "s"})).json["worker_id"]
    (held,) = (await leased(theirs, name))["parcels"]
    own = f"{held['lease_id']}.{foreign}"
    await theirs("POST", f"/v1/leases/{own}/progress", {"message": "theirs"})
    shard = shard_of(UUID(ids(held)[0]))
    near: list[dict[str, Any]] = []
    while not near:
        await enqueue(admin, 1)
        found = (await leased(mine, worker))["parcels"]
        near = [one for one in found if shard_of(UUID(ids(one)[0])) == shard]
    named = {"lease_id": f"{near[0]['lease_id']}.{foreign}", "progress": {"message": "mine"}}
    answer = await mine("POST", f"/v1/workers/{worker}/heartbeat", {"running": [named]})
    assert answer.status == 200, answer.body
    noted = await rows(served.desk.database, "SELECT message FROM betimes.run_notes")
    assert [one["message"] for one in noted] == ["theirs"]


async def test_runs_of_all_shards_cost_as_much_as_those_of_the_parcel(
    served: Served, admin: Client
) -> None:
    """Who names runs that it does not hold does not make us look for them everywhere."""
    await enqueue(admin, 1)
    client, worker = await worker_of(served)
    (parcel,) = (await leased(client, worker))["parcels"]
    ends = [{"run": str(compose(1, shard, 7)), "action": "fail"} for shard in range(500)]
    with statements() as said:
        (answer,) = await told(client, worker, {"lease_id": parcel["lease_id"], "ended": ends})
    assert len(answer["lost"]) == len(ends)
    assert len(said) <= 20


async def test_a_heartbeat_prolongs_leases_by_different_times_with_one_statement(
    served: Served, admin: Client
) -> None:
    """Else each of them locks again everything that the worker holds."""
    await enqueue(admin, 20)
    client, worker = await worker_of(served)
    found = [(await leased(client, worker, 1))["parcels"][0] for _ in range(20)]
    named = [{"lease_id": one["lease_id"], "by": 60 + n} for n, one in enumerate(found)]
    with statements() as said:
        answer = await client("POST", f"/v1/workers/{worker}/heartbeat", {"parcels": named})
    until = [datetime.fromisoformat(one["expires_at"]) for one in answer.json["extended"]]
    assert until == sorted(set(until))
    assert until[-1] - until[0] == timedelta(seconds=19)
    assert len(said) <= 5


async def test_an_answer_is_bounded_by_what_it_weighs(served: Served, admin: Client) -> None:
    """What is too much waits on, uncounted, and comes with the next request."""
    size = 200_000
    made = [run for _ in range(6) for run in await enqueue(admin, 20, payload="x" * size)]
    client, worker = await worker_of(served)
    seen: list[str] = []
    for _ in range(3):
        found = (await leased(client, worker))["parcels"]
        runs = [text(run) for parcel in found for run in ids(parcel)]
        assert len(runs) * size <= ANSWER_BYTES_MAX
        assert {parcel["attempt"] for parcel in found} <= {1}
        seen += runs
        answers = await told(client, worker, *map(success, found)) if found else []
        assert not any("lost" in one for one in answers)
    assert sorted(seen) == sorted(made)
    assert await parcels_left(served) == 0


async def test_retries_of_a_queue_make_no_definition_of_each_run(
    served: Served, admin: Client
) -> None:
    """Else a large payload of a job is sent once for every run of it."""
    put = await admin("PUT", "/v1/queues/default", {"default_retry": {"max_attempts": 2}})
    assert put.status < 300, put.body
    await enqueue(admin, 50, retry=None)
    client, worker = await worker_of(served)
    (definition,) = (await leased(client, worker))["definitions"]
    assert definition["max_attempts"] == 2
