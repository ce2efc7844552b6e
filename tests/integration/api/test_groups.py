"""Creations that come together share a transaction, and nobody notices but the disk."""

import asyncio

from api_kit import Client, Served

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_many_creations_share_commits(served: Served, admin: Client) -> None:
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", {**JOB, "priority": n % 10}) for n in range(60)),
        *(admin("POST", "/v1/runs", {"handler": "h", "payload": n}) for n in range(60)),
    )
    assert {answer.status for answer in answers} == {201, 202}
    assert len({answer.json["id"] for answer in answers}) == 120
    assert served.service.jobs.items + served.service.runs.items > 20
    assert served.service.jobs.commits < served.service.jobs.items
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True
    acts = (await admin("GET", "/v1/audit?limit=1000&action=jobs.create")).json["items"]
    assert len(acts) == 60


async def test_one_bad_apple_spoils_nobody(served: Served, admin: Client) -> None:
    names = ["same" if n % 7 == 0 else f"n{n}" for n in range(42)]
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", {**JOB, "name": name}) for name in names)
    )
    assert sorted({answer.status for answer in answers}) == [201, 409]
    assert sum(answer.status == 409 for answer in answers) == 5
    assert served.service.jobs.commits >= 0


async def test_a_repeated_key_in_a_group_has_one_effect(admin: Client) -> None:
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", JOB, idem=f"k{n % 5}") for n in range(40))
    )
    made = {answer.json["id"] for answer in answers if answer.status == 201}
    assert len(made) == 5
    assert {answer.status for answer in answers} <= {201, 409}
    again = await admin("POST", "/v1/jobs", JOB, idem="k3")
    assert again.json["id"] in made
    other = await admin("POST", "/v1/jobs", {**JOB, "priority": 9}, idem="k3")
    assert other.code == "idempotency_key_reused"
    assert len((await admin("GET", "/v1/jobs?limit=1000")).json["items"]) == 5
