"""An app against a served API: enqueueing, keys, schedules, and what payloads are held to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes import App, Context, Middleware, RunFailed, RunHandle, Unfit
from betimes.sdk import errors
from betimes.sdk.prepared import Prepared


class Noting(Middleware):
    def __init__(self) -> None:
        self.said: list[str] = []

    def before_enqueue(self, prepared: Prepared[Any]) -> None:
        prepared.members["tags"] = {**prepared.members.get("tags", {}), "seen": "yes"}
        self.said.append("before")

    def after_enqueue(self, prepared: Prepared[Any], run: RunHandle[Any]) -> None:
        self.said.append(run.id)


@pytest.fixture
async def app(served: Served) -> AsyncIterator[App]:
    one = App(f"http://127.0.0.1:{served.port}", await served.key(), name="shop")
    yield one
    await one.aclose()


async def beside(work: Callable[[], Any]) -> Any:
    """Blocking calls, beside the server's own loop."""
    return await asyncio.to_thread(work)


async def finish(served: Served, handlers: list[Any], **report: Any) -> dict[str, Any]:
    """A worker that takes one run and reports on it."""
    client = served.client(await served.key(kind="wk"))
    worker = (await client("POST", "/v1/workers", {"name": "w", "handlers": handlers})).json
    path = f"/v1/workers/{worker['worker_id']}/lease"
    (run,) = (await client("POST", path, {"wait": 5})).json["runs"]
    verb = report.pop("verb", "complete")
    done = await client("POST", f"/v1/leases/{run['lease_id']}/{verb}", report)
    assert done.status == 200, done.body
    found: dict[str, Any] = run
    return found


async def test_a_call_becomes_a_run_and_its_result_comes_back(served: Served, app: App) -> None:
    @app.task(queue="default", timeout="2m", tags={"team": "billing"})
    def charge(ctx: Context, payment: str, amount: float = 1.0) -> dict[str, int]:
        return {}

    noting = Noting()
    app.middleware.append(noting)
    run = await beside(lambda: charge.enqueue("p-1", amount=2.5))
    assert noting.said == ["before", run.id]
    told = await finish(served, ["charge"], result={"cents": 250})
    assert told["payload"] == {"payment": "p-1", "amount": 2.5}
    assert told["tags"] == {"team": "billing", "seen": "yes"}
    ended = await beside(lambda: run.wait(timeout=10))
    assert (ended.state, ended.result) == ("succeeded", {"cents": 250})


async def test_waiting_ends_with_patience_or_with_the_failure(served: Served, app: App) -> None:
    @app.task(retry={"max_attempts": 1})
    async def charge(payment: str) -> None:
        """Fails."""

    run = await charge.aenqueue("p-1")
    with pytest.raises(TimeoutError, match="queued"):
        await run.awaited(timeout=0.01)
    error = {"type": "Refused", "message": "no money"}
    await finish(served, ["charge"], verb="fail", error=error)
    ended = await run.awaited(timeout=10)
    assert (ended.state, ended.succeeded) == ("dead", False)
    with pytest.raises(RunFailed, match="Refused: no money"):
        _ = ended.result


async def test_a_dedupe_key_is_one_run_until_it_is_cancelled(app: App) -> None:
    @app.task
    def remind(user: int) -> None:
        """A reminder."""

    def use() -> None:
        later = remind.configure(delay="3 days", dedupe_key="trial-7", priority=9)
        first, second = later.enqueue(7), later.enqueue(7)
        assert (second.id, second.deduplicated, first.deduplicated) == (first.id, True, False)
        assert app.cancel(dedupe_key="trial-7") == first.id
        assert first.fetch().state == "cancelled"
        assert app.cancel(dedupe_key="nobody") is None
        third = later.enqueue(7)
        assert third.id != first.id
        third.cancel("not needed")
        assert third.fetch().state == "cancelled"

    await beside(use)


async def test_many_calls_go_together(app: App) -> None:
    @app.task
    def send(number: int) -> None:
        """Sends."""

    runs = await beside(lambda: app.enqueue_many(send.prepare(n) for n in range(1_001)))
    assert len({run.id for run in runs}) == 1_001
    more = await app.aenqueue_many([send.prepare(1), send.configure(delay=60).prepare(2)])
    assert [run.deduplicated for run in more] == [False, False]


async def test_a_repeated_call_with_a_key_is_one_run(app: App) -> None:
    @app.task
    def send(number: int) -> None:
        """Sends."""

    call = send.configure(idempotency_key="order-7")
    assert (await call.aenqueue(7)).id == (await call.aenqueue(7)).id
    with pytest.raises(errors.IdempotencyKeyReused):
        await call.aenqueue(8)


async def test_schedules_of_decorators_become_jobs_and_are_pruned(app: App, admin: Client) -> None:
    app.task(schedule="0 2 * * *", timezone="Europe/Stockholm", jitter="5m", name="nightly")(
        lambda: None
    )
    old = App(app.client.url, app._api_key, name="shop")
    old.task(schedule="every 1h", name="gone")(lambda: None)
    await admin("POST", "/v1/jobs", {"name": "others", "schedule": "every 1h", "handler": "x"})

    def use() -> None:
        assert old.sync_schedules().created == ["gone"]
        dry = app.sync_schedules(prune=True, dry_run=True)
        assert (dry.created, dry.deleted) == (["nightly"], ["gone"])
        first, second = app.sync_schedules(prune=True), app.sync_schedules(prune=True)
        assert (first.created, first.deleted) == (["nightly"], ["gone"])
        assert (second.created, second.unchanged, second.deleted) == ([], ["nightly"], [])
        names = {job.name: job for job in app.jobs.list()}
        assert set(names) == {"nightly", "others"}
        assert names["nightly"].schedule["timezone"] == "Europe/Stockholm"
        old.close()

    await beside(use)


async def test_a_schedule_cannot_call_what_needs_arguments(app: App) -> None:
    app.task(schedule="every 1h", name="needy")(_needs)
    with pytest.raises(Unfit, match="number"):
        await beside(app.sync_schedules)


def _needs(number: int) -> None:
    """Cannot be called without it."""


async def test_the_service_refuses_what_no_worker_takes(
    served: Served, admin: Client, app: App
) -> None:
    """Declared once by a worker, every door that creates work is held to it."""

    @app.task
    def charge(payment: str, cents: int) -> None:
        """Charges."""

    assert (await admin("POST", "/v1/runs", {"handler": "charge", "payload": 7})).status == 202
    worker = served.client(await served.key(kind="wk"))
    told = {"name": "charge", "schema": charge.arguments.schema}
    made = await worker("POST", "/v1/workers", {"name": "w", "handlers": [told]})
    assert made.status == 201, made.body
    good = {"payment": "p-1", "cents": 1}
    bad = {"payment": "p-1", "cents": "one"}
    new = {"handler": "charge", "payload": bad}
    for path, body in [
        ("/v1/runs", new),
        ("/v1/runs/batch", {"items": [{**new, "payload": good}, new]}),
        ("/v1/jobs", {"schedule": "every 1h", **new}),
        ("/v1/jobs/batch", {"items": [{"schedule": "every 1h", **new}]}),
        ("/v1/enqueue/charge", bad),
    ]:
        refused = await admin("POST", path, body)
        assert (refused.status, refused.code) == (422, "invalid_payload"), (path, refused.body)
        assert refused.json["errors"][0]["pointer"].endswith("/payload/cents"), refused.body
    each = await admin(
        "POST",
        "/v1/runs/batch",
        {"items": [{**new, "payload": good}, new], "mode": "independent"},
    )
    assert [item["status"] for item in each.json["items"]] == [202, 422], each.body
    assert (await admin("POST", "/v1/runs", {**new, "payload": good})).status == 202
    assert (await admin("POST", "/v1/runs", {"handler": "other", "payload": bad})).status == 202
    with pytest.raises(errors.InvalidPayload):
        await app.async_client.runs.create(handler="charge", payload={"payment": "p"})


async def test_doing_it_over_is_held_to_it_as_well(served: Served, admin: Client) -> None:
    """Replays, redrives and runs by hand: what nobody takes any more is refused at the door."""
    client = served.client(await served.key(kind="wk"))
    old = (await admin("POST", "/v1/runs", {"handler": "h", "payload": "text"})).json["id"]
    job = {"schedule": "every 1h", "handler": "h", "payload": 1, "name": "j"}
    assert (await admin("POST", "/v1/jobs", job)).status == 201
    told = {"name": "h", "schema": {"type": "integer"}}
    worker = await client("POST", "/v1/workers", {"name": "w", "handlers": [told]})
    for path, body in [
        (f"/v1/runs/{old}/replay", {}),
        (f"/v1/runs/{old}/replay", {"payload_override": "other"}),
        ("/v1/jobs/j/run", {"payload_override": "other"}),
    ]:
        refused = await admin("POST", path, body)
        assert (refused.status, refused.code) == (422, "invalid_payload"), (path, refused.body)
    assert (await admin("POST", f"/v1/runs/{old}/replay", {"payload_override": 7})).status == 202
    assert (await admin("POST", "/v1/jobs/j/run", {})).status == 202
    assert (await admin("POST", "/v1/jobs/j/run", {"payload_override": 2})).status == 202
    path = f"/v1/workers/{worker.json['worker_id']}/lease"
    leased = (await client("POST", path, {"wait": 5, "max": 10})).json["runs"]
    lease = next(one["lease_id"] for one in leased if one["run_id"] == old)
    ended = {"error": {"type": "E", "message": "m"}, "retry": "never"}
    assert (await client("POST", f"/v1/leases/{lease}/fail", ended)).status == 200
    letters = (await admin("GET", "/v1/dead-letters")).json["items"]
    letter = letters[0]["id"]
    path = f"/v1/dead-letters/{letter}/redrive"
    for body in ({}, {"payload_override": "x"}):
        refused = await admin("POST", path, body)
        assert (refused.status, refused.code) == (422, "invalid_payload"), refused.body
    assert (await admin("POST", path, {"payload_override": 3})).status == 202


async def test_doing_many_over_and_importing_is_held_to_it_as_well(
    served: Served, admin: Client
) -> None:
    client = served.client(await served.key(kind="wk"))
    made = [await admin("POST", "/v1/runs", {"handler": "h", "payload": one}) for one in ("no", 7)]
    old, fits = (one.json["id"] for one in made)
    told = {"name": "h", "schema": {"type": "integer"}}
    worker = await client("POST", "/v1/workers", {"name": "w", "handlers": [told]})

    async def result(path: str, body: dict[str, Any]) -> Any:
        begun = await admin("POST", path, body)
        assert begun.status == 202, begun.body
        await served.operate()
        return (await admin("GET", begun.headers["location"])).json["result"]

    replayed = await result("/v1/runs/bulk", {"action": "replay", "ids": [old, fits]})
    assert (replayed["changed"], replayed["refused"]) == (1, 1)
    assert [(one["id"], one["code"]) for one in replayed["errors"]] == [(old, "invalid_payload")]
    path = f"/v1/workers/{worker.json['worker_id']}/lease"
    for one in (await client("POST", path, {"wait": 5, "max": 10})).json["runs"]:
        await client("POST", f"/v1/leases/{one['lease_id']}/fail", {"retry": "never"})
    every = {"action": "redrive", "filter": {}, "confirm_count": 3}
    redriven = await result("/v1/dead-letters/bulk", every)
    assert (redriven["changed"], redriven["refused"]) == (2, 1)
    assert redriven["errors"][0]["id"] == old
    jobs = [
        {"name": name, "schedule": "every 1h", "handler": "h", "payload": payload}
        for name, payload in (("bad", "text"), ("good", 3))
    ]
    imported = await admin("POST", "/v1/import/betimes", {"format": "betimes/1", "jobs": jobs})
    assert (imported.status, len(imported.json["created"])) == (201, 1), imported.body
    (skipped,) = imported.json["skipped"]
    assert (skipped["place"], "does not fit the handler 'h'" in skipped["reason"]) == (0, True)


async def test_a_payload_by_reference_is_read_where_it_lies_here(
    served: Served, admin: Client
) -> None:
    client = served.client(await served.key(kind="wk"))
    told = {"name": "h", "schema": {"type": "object", "required": ["year"]}}
    await client("POST", "/v1/workers", {"name": "w", "handlers": [told]})
    good, bad, torn = [
        (await admin("POST", "/v1/blobs", raw=content)).json["id"]
        for content in (b'{"year": 2026}', b'{"secret": 42}', b"{")
    ]
    for reference, status in [
        (good, 202), (bad, 422), (torn, 422), ("s3://elsewhere/x", 202),
        ("blob_01JD8Q0W0G8S0B3T1N5Y6Z7A8B", 422),
    ]:  # fmt: skip
        made = await admin("POST", "/v1/runs", {"handler": "h", "payload_ref": reference})
        assert made.status == status, (reference, made.body)
        if status == 422:
            assert made.code == "invalid_payload"
            assert made.json["errors"][0]["pointer"] == "/payload_ref"
            assert b"secret" not in made.body, "nothing of the blob is told"
    new = {"schedule": "every 1h", "handler": "h"}
    assert (await admin("POST", "/v1/jobs", {**new, "payload_ref": bad})).status == 422
    job = await admin("POST", "/v1/jobs", {**new, "payload_ref": good, "name": "j"})
    assert job.status == 201, job.body
    batch = {"items": [{"handler": "h", "payload_ref": one} for one in (good, bad)]}
    assert (await admin("POST", "/v1/runs/batch", batch)).status == 422
    nothing = await admin("POST", "/v1/runs", {"handler": "h"})
    assert nothing.status == 422, "no payload and no reference is no object"
    run = await admin("POST", "/v1/runs", {"handler": "h", "payload_ref": good})
    again = await admin("POST", f"/v1/runs/{run.json['id']}/replay", {})
    assert again.status == 202, again.body


async def test_two_releases_side_by_side_are_both_served(served: Served, admin: Client) -> None:
    """While an old worker lives, what only it takes is accepted beside what the new one takes."""
    client = served.client(await served.key(kind="wk"))

    async def register(kind: str) -> str:
        told = {"name": "h", "schema": {"type": kind}}
        answer = await client("POST", "/v1/workers", {"name": kind, "handlers": [told]})
        return str(answer.json["worker_id"])

    old = await register("integer")
    await register("string")
    for payload, status in [(1, 202), ("a", 202), ([], 422)]:
        made = await admin("POST", "/v1/runs", {"handler": "h", "payload": payload})
        assert made.status == status, made.body
    left = await client("POST", f"/v1/workers/{old}/leave")
    assert left.status == 204
    served.service.schemas.forget(DEFAULT)
    assert (await admin("POST", "/v1/runs", {"handler": "h", "payload": 1})).status == 422


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "no such type"}, "JSON Schema"),
        ({"$ref": "http://127.0.0.1:1/schema"}, "stands for itself"),
        ({"$ref": "file:///etc/passwd"}, "stands for itself"),
        ({"enum": ["x" * 70_000]}, "at most"),
    ],
)
async def test_schemas_that_are_none_are_refused(
    served: Served, schema: dict[str, Any], told: str
) -> None:
    client = served.client(await served.key(kind="wk"))
    answer = await client(
        "POST", "/v1/workers", {"name": "w", "handlers": [{"name": "h", "schema": schema}]}
    )
    assert answer.status in {400, 413}, answer.body
    assert told in answer.body.decode()
