"""What a job says its payloads are like holds for all of them."""

from typing import Any

from api_kit import Client, Served

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"type": "string"}},
    "required": ["to"],
}
JOB = {"name": "mail", "schedule": "every 1h", "handler": "noop", "payload_schema": SCHEMA}
GOOD, BAD = {"to": "a"}, {"to": 7}


def refusal(answer: Any) -> tuple[int, str, str]:
    return answer.status, answer.code, answer.json["errors"][0]["pointer"]


async def test_a_job_is_held_to_its_own_schema(admin: Client) -> None:
    wrong = await admin("POST", "/v1/jobs", {**JOB, "payload": BAD})
    assert refusal(wrong) == (422, "invalid_payload", "/payload/to")
    assert "the payload_schema of its job" in wrong.json["detail"]
    assert refusal(await admin("POST", "/v1/jobs", JOB))[:2] == (422, "invalid_payload")
    broken = {**JOB, "payload": GOOD, "payload_schema": {"type": "nonsense"}}
    assert refusal(await admin("POST", "/v1/jobs", broken))[2] == "/payload_schema"
    made = await admin("POST", "/v1/jobs", {**JOB, "payload": GOOD})
    assert (made.status, made.json["payload_schema"]) == (201, SCHEMA), made.body
    patch: dict[str, Any] = {"headers": {"content-type": "application/merge-patch+json"}}
    edited = await admin("PATCH", "/v1/jobs/mail", {"payload": BAD}, **patch)
    assert edited.code == "invalid_payload"
    freed = await admin("PATCH", "/v1/jobs/mail", {"payload": BAD, "payload_schema": None}, **patch)
    assert freed.status == 200, freed.body
    assert "payload_schema" not in freed.json


async def test_every_override_is_held_to_it(served: Served, admin: Client) -> None:
    await admin("POST", "/v1/jobs", {**JOB, "payload": GOOD})
    wrong = await admin("POST", "/v1/jobs/mail/run", {"payload_override": BAD})
    assert refusal(wrong) == (422, "invalid_payload", "/payload/to")
    run = await admin("POST", "/v1/jobs/mail/run", {"payload_override": {"to": "b"}})
    assert run.status == 202, run.body
    replay = f"/v1/runs/{run.json['id']}/replay"
    assert (await admin("POST", replay, {"payload_override": BAD})).code == "invalid_payload"
    assert (await admin("POST", replay, {"payload_override": GOOD})).status == 202
    await admin("DELETE", "/v1/jobs/mail")
    assert (await admin("POST", replay, {"payload_override": BAD})).status == 202, "it is gone"
