"""Alert rules, alerts and silences over the API."""

from typing import Any, get_args

from api_kit import Client, Served
from betimes.domain.alert import Condition
from betimes.wire import alerts as wire

LATE = {"condition": "queue_lag", "threshold": "PT5M", "queues": ["mail"], "for": "PT1M"}


async def test_a_rule_can_name_tags_instead_of_jobs(admin: Client) -> None:
    path = "/v1/alert-rules/by-tag?force=true"
    body = {"condition": "job_late", "threshold": "PT1M", "tags": {"env": "prod"}}
    assert (await admin("PUT", path, body)).status == 201
    assert (await admin("GET", "/v1/alert-rules/by-tag")).json["tags"] == {"env": "prod"}
    queue = {"condition": "queue_lag", "threshold": "PT1M", "queues": ["a"], "tags": {"a": "b"}}
    refused = await admin("PUT", path, queue)
    assert refused.status in (400, 422)
    assert "/tags" in refused.body.decode()


async def test_a_rule_is_put_read_and_forgotten(admin: Client) -> None:
    path = "/v1/alert-rules/mail-late"
    assert (await admin("PUT", path, LATE)).code == "precondition_required"
    made = await admin("PUT", path, LATE, headers={"If-None-Match": "*"})
    assert made.status == 201, made.body
    assert made.json["threshold"] == "PT5M"
    assert (made.json["for"], made.json["severity"]) == ("PT1M", "error")
    again = await admin("PUT", path, LATE, headers={"If-None-Match": "*"})
    assert again.json["detail"].startswith("If-None-Match does not fit")
    assert again.code == "precondition_failed"
    changed = await admin(
        "PUT", path, {**LATE, "severity": "critical"}, headers={"If-Match": '"1"'}
    )
    assert (changed.status, changed.json["revision"]) == (200, 2)
    read = await admin("GET", path)
    assert read.json == changed.json
    tag = {"If-None-Match": read.headers["etag"]}
    assert (await admin("GET", path, headers=tag)).status == 304
    assert (await admin("GET", "/v1/alert-rules")).json["items"] == [read.json]
    tried = await admin("PUT", "/v1/alert-rules/other?force=true&validate_only=true", LATE)
    assert tried.json["validated"] is True
    assert (await admin("GET", "/v1/alert-rules/other")).code == "not_found"
    assert (await admin("DELETE", path)).status == 204
    assert (await admin("GET", path)).code == "not_found"


async def test_what_makes_no_sense_is_refused_with_its_place(served: Served, admin: Client) -> None:
    tenant = await served.tenant("other")
    other = served.client(await served.key(tenant))
    theirs = (await other("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h"})).json["id"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({**LATE, "queues": []}, "/queues"),
        ({**LATE, "jobs": [theirs]}, "/jobs"),
        ({**LATE, "threshold": "soon"}, "/threshold"),
        ({**LATE, "threshold": 0}, "/threshold"),
        ({**LATE, "for": "P30D"}, "/for"),
        ({**LATE, "targets": ["ep_01JD00000000000000000000ZZ"]}, "/targets/0"),
        ({**LATE, "targets": ["somebody"]}, "/targets/0"),
        ({"condition": "job_failed_n", "threshold": "PT5M"}, "/threshold"),
        ({"condition": "job_failed_n", "threshold": 1.5}, "/threshold"),
        ({"condition": "job_slow", "threshold": 2, "jobs": [theirs]}, "/jobs/0"),
        ({"condition": "job_slow", "threshold": 2, "jobs": ["x"]}, "/jobs/0"),
        ({"condition": "no_success_since", "threshold": "PT1H"}, "/jobs"),
    ]
    for body, pointer in cases:
        answer = await admin("PUT", "/v1/alert-rules/r?force=true", body)
        assert answer.code == "invalid_parameter", (body, answer.body)
        assert answer.json["errors"][0]["pointer"] == pointer, body


async def test_silences_are_made_listed_and_ended(admin: Client) -> None:
    body = {"rule": "mail-late", "until": "2100-01-01T00:00:00Z", "reason": "known"}
    made = await admin("POST", "/v1/silences", body)
    assert made.status == 201
    assert (await admin("GET", "/v1/silences")).json["items"] == [made.json]
    assert (await admin("DELETE", f"/v1/silences/{made.json['id']}")).status == 204
    assert (await admin("GET", "/v1/silences")).json["items"] == []
    past = {**body, "until": "2020-01-01T00:00:00Z"}
    assert (await admin("POST", "/v1/silences", past)).code == "time_in_past"
    assert (await admin("POST", "/v1/silences", {**body, "rule": None})).status == 400
    assert (await admin("GET", "/v1/alerts?state=firing")).json["items"] == []


def test_the_api_knows_every_condition() -> None:
    assert set(get_args(wire.Condition)) == {one.value for one in Condition}
