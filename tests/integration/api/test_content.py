"""What a run was given and has returned: of its own, of its job, in parts, and no longer."""

from datetime import timedelta
from uuid import UUID

import pytest

from api_kit import Client, Served
from betimes.domain.ids import from_text, time_of, to_text

JOB = {"schedule": {"type": "manual"}, "handler": "h", "name": "j", "payload": {"n": 1}}


async def test_a_run_of_a_job_shows_what_its_revision_gives_it(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    run = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    await admin("PATCH", "/v1/jobs/j", {"payload": {"n": 2}})
    own = (await admin("POST", "/v1/jobs/j/run", {"payload_override": {"n": 3}})).json["id"]
    late = (await admin("POST", "/v1/jobs/j/run")).json["id"]
    for one, given in ((run, {"n": 1}), (own, {"n": 3}), (late, {"n": 2})):
        assert (await admin("GET", f"/v1/runs/{one}/payload")).json == given
        assert (await admin("GET", f"/v1/runs/{one}?view=full")).json["payload"] == given
        full = await admin("GET", f"/v1/runs/{one}?view=full&include=attempts")
        assert full.json["payload"] == given
    await admin("DELETE", "/v1/jobs/j")
    assert (await admin("GET", f"/v1/runs/{late}/payload")).json == {"n": 2}, "history is kept"
    bare = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    assert (await admin("GET", f"/v1/runs/{bare}/payload")).status == 404


@pytest.mark.parametrize(
    ("asked", "status", "part", "told"),
    [
        ("bytes=0-2", 206, b'{"a', "bytes 0-2/15"),
        ("bytes=10-", 206, b'xyz"}', "bytes 10-14/15"),
        ("bytes=10-99", 206, b'xyz"}', "bytes 10-14/15"),
        ("bytes=-2", 206, b'"}', "bytes 13-14/15"),
        ("bytes=-99", 206, None, "bytes 0-14/15"),
        ("bytes=3-1", 200, None, None),
        ("bytes=0-1,3-4", 200, None, None),
        ("lines=1-2", 200, None, None),
        ("bytes=15-", 416, None, "bytes */15"),
        ("bytes=-0", 416, None, "bytes */15"),
    ],
)
async def test_a_payload_is_read_in_parts(
    admin: Client, asked: str, status: int, part: bytes | None, told: str | None
) -> None:
    whole = b'{"a":"tuvwxyz"}'
    run = (await admin("POST", "/v1/runs", {"handler": "h", "payload": {"a": "tuvwxyz"}})).json[
        "id"
    ]
    answer = await admin("GET", f"/v1/runs/{run}/payload", headers={"range": asked})
    assert answer.status == status
    assert answer.headers.get("content-range") == told
    if status != 416:
        assert answer.headers["accept-ranges"] == "bytes"
        assert answer.body == (whole if part is None else part)


async def test_what_nobody_keeps_any_more_is_told_whoever_it_belonged_to(
    served: Served, admin: Client
) -> None:
    other = served.client(await served.key(await served.tenant("other")))
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    assert (await other("GET", f"/v1/runs/{run}")).status == 404
    kept = served.service.runs_kept
    old = from_text("run", run).int - (int((kept + timedelta(days=1)).total_seconds() * 1000) << 80)
    text = to_text("run", UUID(int=old))
    assert time_of(from_text("run", text)) < served.service.now() - kept
    answers = [await client("GET", f"/v1/runs/{text}") for client in (admin, other)]
    assert [(one.status, one.code) for one in answers] == [(410, "retention_expired")] * 2
    assert answers[0].json["detail"] == answers[1].json["detail"]
    assert "30 days" in answers[0].json["detail"]
    for path in ("payload", "result", "attempts", "timeline", "logs", "wait?timeout=0"):
        assert (await admin("GET", f"/v1/runs/{text}/{path}")).status == 410, path
    object.__setattr__(served.service, "runs_kept", timedelta(days=400))
    assert (await admin("GET", f"/v1/runs/{text}")).status == 404
