"""Declared sets of jobs over HTTP."""

from typing import Any

from api_kit import Answer, Client, Served

SET = {"tags": {"set": "reports"}}


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "schedule": "every 1h", "handler": "h", **SET, **more}


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.json["errors"]]


async def applied(admin: Client, *jobs: dict[str, Any], **more: Any) -> Answer:
    body = {"jobs": list(jobs), "selector": SET, "prune": True, **more}
    return await admin("POST", "/v1/jobs/apply", body)


async def test_a_set_is_brought_about_and_then_stays(admin: Client) -> None:
    first = await applied(admin, job("a"), job("b", group="night"))
    assert first.status == 200, first.body
    assert (first.json["created"], first.json["deleted"]) == (["a", "night~b"], [])
    again = (await applied(admin, job("a"), job("b", group="night"))).json
    assert again["unchanged"] == ["a", "night~b"], "a period goes on counting from where it began"
    assert (await admin("GET", "/v1/jobs/a")).json["revision"] == 1
    changed = (await applied(admin, job("a", priority=2, timeout="PT5M"), job("c"))).json
    assert (changed["created"], changed["updated"], changed["deleted"]) == (
        ["c"],
        ["a"],
        ["night~b"],
    )
    assert changed["diff"][0]["members"] == ["priority", "timeout_ms"]
    assert (await admin("GET", "/v1/jobs/night~b")).status == 404
    acts = (await admin("GET", f"/v1/audit?resource={changed['diff'][0]['id']}")).json["items"]
    assert [act["action"] for act in acts] == ["jobs.apply", "jobs.apply"]
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True


async def test_a_dry_run_changes_nothing(admin: Client) -> None:
    told = await applied(admin, job("a"), dry_run=True)
    assert (told.json["created"], told.json["dry_run"]) == (["a"], True)
    assert (await admin("GET", "/v1/jobs/a")).status == 404


async def test_a_set_leaves_the_jobs_of_others_alone(admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**job("a"), "tags": {}})
    await admin("POST", "/v1/jobs", {**job("free"), "tags": {"set": "else"}})
    taken = await applied(admin, job("a"))
    assert (taken.status, taken.code, pointers(taken)) == (409, "already_exists", ["/jobs/0/name"])
    adopted = (await applied(admin, job("a"), adopt=True)).json
    assert (adopted["updated"], adopted["deleted"]) == (["a"], [])
    assert (await admin("GET", "/v1/jobs/free")).status == 200


async def test_all_or_nothing_and_pointed_at(served: Served, admin: Client) -> None:
    bad = await applied(admin, job("a"), job("b", schedule="99 * * * *"))
    assert (bad.status, pointers(bad)) == (422, ["/jobs/1/schedule/expr"])
    past = {"type": "once", "at": "2020-01-01T00:00:00Z"}
    late = await applied(admin, job("a"), job("b", schedule=past))
    assert (late.status, pointers(late)[0].startswith("/jobs/1/")) == (422, True), late.body
    assert (await admin("GET", "/v1/jobs/a")).status == 404
    unnamed = await applied(admin, {**job("a"), "name": None})
    assert pointers(unnamed) == ["/jobs/0/name"]
    twice = await applied(admin, job("a"), job("a"))
    assert pointers(twice) == ["/jobs/1/name"]
    stranger = await applied(admin, {**job("a"), "tags": {}})
    assert pointers(stranger) == ["/jobs/0/tags"]
    everything = await applied(admin, job("a"), selector={})
    assert pointers(everything) == ["/selector"], "nobody deletes everything by mistake"
    reader = served.client(await served.key(kind="rk"))
    assert (await applied(reader, job("a"))).code == "scope_missing"


async def test_a_cancelled_job_of_the_set_is_made_anew(admin: Client) -> None:
    await applied(admin, job("a"))
    await admin("POST", "/v1/jobs/a/cancel")
    again = (await applied(admin, job("a"))).json
    assert again["created"] == ["a"]
    assert (await admin("GET", "/v1/jobs/a")).json["status"]["state"] == "active"


async def test_a_repeated_request_is_answered_as_before(admin: Client) -> None:
    body = {"jobs": [job("a")], "selector": SET}
    first, second = [await admin("POST", "/v1/jobs/apply", body, idem="same") for _ in range(2)]
    assert second.headers["idempotent-replayed"] == "true"
    assert first.json == second.json
