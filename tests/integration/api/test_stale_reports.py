"""Every report is judged by its own fence, whatever else travels in the same batch (V4)."""

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.domain.ids import ShardId, to_text
from betimes.store.partitions import Partitions
from betimes.store.succeed import Held
from worker_kit import enqueue, reap, rows

RETRY = {"max_attempts": 5, "backoff": "fixed", "initial": 0, "jitter": "none"}


async def worker_of(served: Served) -> tuple[Client, str]:
    client = served.client(await served.key(kind="wk"))
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": ["noop"], "slots": 10})
    return client, made.json["worker_id"]


async def leased(client: Client, worker: str, count: int = 1) -> list[dict[str, Any]]:
    got = await client("POST", f"/v1/workers/{worker}/lease", {"max": count, "wait": 0})
    found: list[dict[str, Any]] = got.json["runs"]
    return found


async def expire(served: Served) -> None:
    """Every lease has run out, and the janitor has seen it."""
    database = served.desk.database
    await reap(database, served.service.clock.now() + timedelta(hours=2))


async def twice(served: Served, admin: Client, **more: Any) -> tuple[Client, str, str, str]:
    """A run that one worker has leased twice: the client, the run, the old and the valid lease."""
    client, worker = await worker_of(served)
    made = await admin("POST", "/v1/runs", {"handler": "noop", "retry": RETRY, **more})
    (old,) = await leased(client, worker)
    await expire(served)
    (valid,) = await leased(client, worker)
    assert (old["run_id"], old["fence"], valid["fence"]) == (valid["run_id"], 1, 2)
    return client, made.json["id"], old["lease_id"], valid["lease_id"]


def complete(lease: str, result: Any, **more: Any) -> dict[str, Any]:
    return {"lease_id": lease, "action": "complete", "result": result, **more}


async def told(client: Client, *items: dict[str, Any]) -> list[int]:
    done = await client("POST", "/v1/leases/batch", {"items": list(items)})
    assert done.status == 207, done.body
    return [item["status"] for item in done.json["items"]]


async def parcels_of(served: Served, run: str) -> int:
    found = await rows(
        served.desk.database,
        "SELECT id FROM betimes.parcels WHERE EXISTS (SELECT FROM unnest(run_ids) AS one (id)"
        " WHERE betimes.id_text('run', one.id) = $1)",
        run,
    )
    return len(found)


@pytest.mark.parametrize("tags", [{}, {"job": "x"}])
@pytest.mark.parametrize("order", list(permutations(["old", "valid"])))
async def test_a_stale_report_beside_the_valid_one_is_refused(
    served: Served, admin: Client, order: tuple[str, str], tags: dict[str, str]
) -> None:
    client, run, old, valid = await twice(served, admin, tags=tags)
    leases = {"old": old, "valid": valid}
    metrics = {"old": {"n": 1}, "valid": {"n": 2}}
    answers = await told(
        client, *(complete(leases[who], who, metrics=metrics[who]) for who in order)
    )
    assert dict(zip(order, answers, strict=True)) == {"old": 409, "valid": 200}
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["state"], shown["result"], shown["attempt"]) == ("succeeded", "valid", 2)
    assert shown["metrics"] == {"n": 2}
    assert await parcels_of(served, run) == 0


@pytest.mark.parametrize("order", list(permutations(["old", "valid"])))
async def test_a_stale_failure_beside_a_valid_success_makes_no_retry(
    served: Served, admin: Client, order: tuple[str, str]
) -> None:
    client, run, old, valid = await twice(served, admin)
    items = {
        "old": {"lease_id": old, "action": "fail", "error": {"type": "Old", "message": ""}},
        "valid": complete(valid, "valid"),
    }
    answers = await told(client, *(items[who] for who in order))
    assert dict(zip(order, answers, strict=True)) == {"old": 409, "valid": 200}
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["state"], shown["result"]) == ("succeeded", "valid")
    assert await parcels_of(served, run) == 0
    outcomes = await rows(served.desk.database, "SELECT outcome FROM betimes.attempts")
    assert outcomes == []


@pytest.mark.parametrize("order", list(permutations(["old", "valid"])))
async def test_a_stale_success_beside_a_valid_failure_ends_nothing(
    served: Served, admin: Client, order: tuple[str, str]
) -> None:
    client, run, old, valid = await twice(served, admin)
    items = {
        "old": complete(old, "old"),
        "valid": {"lease_id": valid, "action": "fail", "error": {"type": "New", "message": ""}},
    }
    answers = await told(client, *(items[who] for who in order))
    assert dict(zip(order, answers, strict=True)) == {"old": 409, "valid": 200}
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert shown["state"] == "retry_wait"
    assert await parcels_of(served, run) == 1


async def test_stale_and_valid_of_two_workers_in_one_batch(served: Served, admin: Client) -> None:
    """The token says which worker it is of; a batch may carry several."""
    first, one = await worker_of(served)
    _, two = await worker_of(served)
    run = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
    (old,) = await leased(first, one)
    await expire(served)
    (valid,) = await leased(first, two)
    items = [complete(old["lease_id"], "old"), complete(valid["lease_id"], "valid")]
    assert await told(first, *items) == [409, 200]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert shown["result"] == "valid"


async def test_a_stale_report_among_many_others(served: Served, admin: Client) -> None:
    client, run, old, valid = await twice(served, admin)
    worker = (await admin("GET", "/v1/workers")).json["items"][0]["id"]
    items = [{"handler": "noop", "payload": n} for n in range(6)]
    await admin("POST", "/v1/runs/batch", {"items": items})
    others = [one["lease_id"] for one in await leased(client, worker, 6)]
    assert len(others) == 6
    batch = [complete(lease, n) for n, lease in enumerate(others)]
    batch[2:2] = [complete(old, "old")]
    batch[5:5] = [complete(valid, "valid")]
    expected = [409 if one["lease_id"] == old else 200 for one in batch]
    assert await told(client, *batch) == expected
    assert await told(client, *batch) == expected, "and the same when it is said again"
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert shown["result"] == "valid"


async def test_reports_split_over_requests(served: Served, admin: Client) -> None:
    client, run, old, valid = await twice(served, admin)
    assert await told(client, complete(old, "old")) == [409]
    assert await told(client, complete(valid, "valid")) == [200]
    assert await told(client, complete(old, "old"), complete(valid, "again")) == [409, 200]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert shown["result"] == "valid"


async def test_the_same_report_twice_in_one_batch_counts_once(
    served: Served, admin: Client
) -> None:
    """A failure said twice made two retries of one run, and a death an error of the database."""
    client, worker = await worker_of(served)
    run = (await admin("POST", "/v1/runs", {"handler": "noop", "retry": RETRY})).json["id"]
    (one,) = await leased(client, worker)
    fail = {"lease_id": one["lease_id"], "action": "fail", "error": {"type": "E", "message": ""}}
    assert await told(client, fail, fail) == [200, 200]
    assert await parcels_of(served, run) == 1
    (two,) = await leased(client, worker)
    dead = {**fail, "lease_id": two["lease_id"], "retry": "never"}
    assert await told(client, dead, dead) == [200, 200]
    letters = (await admin("GET", "/v1/dead-letters")).json["items"]
    assert [letter["id"] for letter in letters] == [run]


async def test_of_two_ends_of_one_lease_the_first_counts(served: Served, admin: Client) -> None:
    client, worker = await worker_of(served)
    run = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
    (one,) = await leased(client, worker)
    lease = one["lease_id"]
    first = complete(lease, "first", metrics={"n": 1})
    second = complete(lease, "second", metrics={"n": 2})
    third = {"lease_id": lease, "action": "fail", "error": {"type": "E", "message": ""}}
    assert await told(client, first, second, third) == [200, 200, 200]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["state"], shown["result"]) == ("succeeded", "first")
    assert shown["metrics"] == {"n": 1}
    assert await parcels_of(served, run) == 0


@pytest.mark.parametrize("newest_first", [True, False])
async def test_of_two_runs_of_one_parcel_only_the_one_that_ended_ends(
    served: Served, admin: Client, *, newest_first: bool
) -> None:
    """A stale end of the other one would have emptied the parcel, and the other one were lost."""
    client, worker = await worker_of(served)
    database, now = served.desk.database, served.service.clock.now()
    await Partitions(database).ensure(now.date(), ahead_days=1)
    first, second = await enqueue(database, now, ["noop"] * 2, tenant=DEFAULT, shard=ShardId(1))
    old = {one["run_id"]: one["lease_id"] for one in await leased(client, worker, 2)}
    await expire(served)
    valid = {one["run_id"]: one["lease_id"] for one in await leased(client, worker, 2)}
    one, two = to_text("run", first), to_text("run", second)
    assert {*old} == {*valid} == {one, two}
    batch = [complete(old[two], "old"), complete(valid[one], "valid")]
    answers = await told(client, *(reversed(batch) if newest_first else batch))
    assert answers == ([200, 409] if newest_first else [409, 200])
    assert (await admin("GET", f"/v1/runs/{two}")).json["state"] == "running"
    assert await parcels_of(served, one) == 0
    assert await parcels_of(served, two) == 1
    assert await told(client, complete(valid[two], "valid")) == [200]
    assert await parcels_of(served, two) == 0


async def test_a_stale_heartbeat_beside_the_valid_one(served: Served, admin: Client) -> None:
    """A command is for the lease that is good, and the other one is told to be lost."""
    client, run, old, valid = await twice(served, admin)
    worker = (await admin("GET", "/v1/workers")).json["items"][0]["id"]
    await admin("POST", f"/v1/runs/{run}/cancel")
    for order in ([old, valid], [valid, old]):
        named = [{"lease_id": lease, "progress": {"percent": 10}} for lease in order]
        beat = (await client("POST", f"/v1/workers/{worker}/heartbeat", {"running": named})).json
        assert [one["lease_id"] for one in beat["extended"]] == [valid]
        assert beat["lost"] == [old]
        assert [one["lease_id"] for one in beat["commands"]] == [valid]


@pytest.mark.parametrize("verb", ["progress", "checkpoint", "logs", "extend", "snooze", "release"])
async def test_whatever_a_stale_holder_says_is_refused(
    served: Served, admin: Client, verb: str
) -> None:
    client, _, old, valid = await twice(served, admin)
    bodies: dict[str, Any] = {
        "progress": {"percent": 1},
        "checkpoint": {"data": 1},
        "logs": {"lines": [{"message": "x"}]},
        "extend": {"by": "PT1M"},
        "snooze": {"for": "PT1M"},
        "release": {},
    }
    refused = await client("POST", f"/v1/leases/{old}/{verb}", bodies[verb])
    assert (refused.status, refused.code) == (409, "lease_lost")
    assert (await client("POST", f"/v1/leases/{valid}/{verb}", bodies[verb])).status < 300


async def test_without_the_check_of_each_report_the_stale_one_wins(
    served: Served, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Knock-out: `Held.valid`, and nothing else, tells the two reports apart."""

    def by_parcel(told: Any, good: Any) -> Any:
        parcels = {parcel for parcel, _ in good}
        return [one for one in told if one.parcel in parcels]

    monkeypatch.setattr(Held, "valid", staticmethod(by_parcel))
    client, run, old, valid = await twice(served, admin)
    assert await told(client, complete(old, "old"), complete(valid, "valid")) == [200, 409]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert shown["result"] == "old"


async def test_one_report_that_cannot_be_read_spoils_no_other(
    served: Served, admin: Client
) -> None:
    """One report that cannot be read made all of its batch lost, and numbers were dropped."""
    client, run, old, valid = await twice(served, admin)
    answers = await told(
        client,
        complete("lea_foreign", "foreign"),
        complete(old, "old", metrics={"n": 1}),
        complete(valid, "valid", metrics={"n": 2}),
    )
    assert answers == [404, 409, 200]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["result"], shown["metrics"]) == ("valid", {"n": 2})
    assert await leased(client, (await admin("GET", "/v1/workers")).json["items"][0]["id"]) == []
