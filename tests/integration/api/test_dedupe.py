"""Business keys over HTTP: 200, the resource that has the key, and a word about it."""

import asyncio

from api_kit import Client, Served

RUN = {"handler": "h", "dedupe_key": "order 7"}
JOB = {"schedule": "every 1h", "handler": "h", "dedupe_key": "order 7"}


async def test_a_second_run_is_the_first(admin: Client) -> None:
    first = await admin("POST", "/v1/runs", RUN)
    assert (first.status, first.json["deduplicated"]) == (202, False)
    second = await admin("POST", "/v1/runs", {**RUN, "payload": 1})
    assert (second.status, second.json["deduplicated"]) == (200, True)
    assert second.json["id"] == first.json["id"]
    assert second.json["dedupe_key"] == "order 7"
    assert second.headers["location"] == f"/v1/runs/{first.json['id']}"
    acts = (await admin("GET", "/v1/audit?action=runs.create")).json["items"]
    assert len(acts) == 1


async def test_an_answer_about_a_key_is_kept_with_the_request(admin: Client) -> None:
    await admin("POST", "/v1/runs", RUN)
    for replayed in (False, True):
        again = await admin("POST", "/v1/runs", RUN, idem="same")
        assert (again.status, again.json["deduplicated"]) == (200, True)
        assert ("idempotent-replayed" in again.headers) == replayed


async def test_debounce_tells_what_it_replaced(admin: Client) -> None:
    body = {"handler": "h", "dedupe": {"key": "k", "window": "PT1M", "form": "debounce"}}
    first = (await admin("POST", "/v1/runs", body)).json
    second = await admin("POST", "/v1/runs", body)
    assert (second.status, second.json["replaced"]) == (202, first["id"])
    gone = (await admin("GET", f"/v1/runs/{first['id']}")).json
    assert (gone["state"], gone["state_reason"]["code"]) == ("skipped", "DEDUPED")


async def test_a_second_job_is_the_first(admin: Client) -> None:
    first = await admin("POST", "/v1/jobs", JOB)
    second = await admin("POST", "/v1/jobs", {**JOB, "name": "other"})
    assert (first.status, second.status) == (201, 200)
    assert (second.json["id"], second.json["deduplicated"]) == (first.json["id"], True)
    assert "deduplicated" not in first.json
    assert (await admin("GET", f"/v1/jobs/{first.json['id']}")).json["dedupe_key"] == "order 7"
    patched = await admin(
        "PATCH",
        f"/v1/jobs/{first.json['id']}",
        {"priority": 7},
        headers={"content-type": "application/merge-patch+json"},
    )
    assert (patched.status, patched.json["dedupe_key"]) == (200, "order 7")


async def test_batches_say_it_item_by_item(admin: Client) -> None:
    runs = await admin("POST", "/v1/runs/batch", {"items": [RUN, {"handler": "h"}, RUN]})
    assert [item["deduplicated"] for item in runs.json["items"]] == [False, False, True]
    for mode, status in (("atomic", 201), ("independent", 207)):
        body = {"items": [{**JOB, "dedupe_key": mode}] * 2, "mode": mode}
        jobs = await admin("POST", "/v1/jobs/batch", body)
        assert jobs.status == status
        assert [item["status"] for item in jobs.json["items"]] == [201, 200]
        assert len({item["id"] for item in jobs.json["items"]}) == 1


async def test_many_at_once_share_a_group_and_one_run(served: Served, admin: Client) -> None:
    answers = await asyncio.gather(*(admin("POST", "/v1/runs", RUN) for _ in range(20)))
    assert sorted({answer.status for answer in answers}) == [200, 202]
    assert sum(answer.status == 202 for answer in answers) == 1
    assert len({answer.json["id"] for answer in answers}) == 1
    assert served.service.runs.commits > 0


async def test_what_makes_no_sense_is_refused(admin: Client) -> None:
    for body, pointer in (
        ({**RUN, "dedupe": {"key": "x"}}, "/dedupe_key"),
        ({"handler": "h", "dedupe": {"key": "x", "form": "throttle"}}, "/dedupe/window"),
    ):
        refused = await admin("POST", "/v1/runs", body)
        assert 400 <= refused.status < 500
        assert refused.json["errors"][0]["pointer"] == pointer
    job = {**JOB, "dedupe_key": None, "dedupe": {"key": "x", "form": "debounce", "window": "1m"}}
    del job["dedupe_key"]
    refused = await admin("POST", "/v1/jobs", job)
    assert refused.json["errors"][0]["pointer"] == "/dedupe/form"
