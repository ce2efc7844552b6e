"""The promises of the API, row by row, with processes that really die."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api_kit import Answer, Client, Served
from betimes.api.openapi import document
from betimes.api.routes import ROUTES

JOB = {"schedule": "every 1h", "handler": "h"}
SCRIPT = Path(__file__).parents[2] / "crash_server.py"
DOORS: dict[str, dict[str, Any]] = {
    "/v1/jobs": JOB,
    "/v1/runs": {"handler": "h"},
    "/v1/jobs/batch": {"items": [JOB, JOB]},
    "/v1/runs/batch": {"items": [{"handler": "h"}, {"handler": "h"}]},
}


@asynccontextmanager
async def a_process(dsn: str, when: str) -> AsyncIterator[Client]:
    """The API in a process of its own, and a client for it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), dsn, when, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        port, key = (await process.stdout.readline()).decode().split()
        yield Client(int(port), key)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def counted(client: Client, path: str) -> int:
    noun = "jobs" if "jobs" in path else "runs"
    return len((await client("GET", f"/v1/{noun}?limit=1000")).json["items"])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("path", DOORS)
async def test_a_key_survives_a_process_killed_around_its_commit(
    dsn: str, path: str, when: str
) -> None:
    """Key and effect commit together: a crash leaves both or neither, and a repetition heals."""
    body = DOORS[path]
    many = len(body.get("items", [1]))
    async with a_process(dsn, when) as doomed:
        with pytest.raises((IndexError, ConnectionError)):  # the answer never comes
            await doomed("POST", path, body, idem="the-key")
    async with a_process(dsn, "never") as client:
        assert await counted(client, path) == (0 if when == "before" else many)
        other = {**body, "items": body["items"][:1]} if many > 1 else {**body, "priority": 1}
        if when == "after":
            reused = await client("POST", path, other, idem="the-key")
            assert (reused.status, reused.code) == (422, "idempotency_key_reused")
        first = await client("POST", path, body, idem="the-key")
        assert first.status in (201, 202), first.body
        assert ("idempotent-replayed" in first.headers) == (when == "after")
        again = await client("POST", path, body, idem="the-key")
        assert (again.status, again.body) == (first.status, first.body)
        assert again.headers["idempotent-replayed"] == "true"
        assert await counted(client, path) == many
        missing = await client("POST", path, body, idem=None)
        assert (missing.status, missing.code) == (400, "idempotency_key_required")
        both = await asyncio.gather(*(client("POST", path, body, idem="race") for _ in range(6)))
        assert {one.status for one in both} <= {first.status, 409}
        assert len({one.body for one in both if one.status == first.status}) == 1
        assert await counted(client, path) == 2 * many


async def test_preconditions_row_by_row(admin: Client) -> None:
    """412 when a condition does not hold, 428 when one is missing, never 409 for either."""
    await admin("PUT", "/v1/jobs/n", JOB, headers={"If-None-Match": "*"})
    rows: list[tuple[str, dict[str, str], Any, int, str | None]] = [
        ("PUT", {}, JOB, 428, "precondition_required"),
        ("PUT", {"If-Match": '"9"'}, JOB, 412, "precondition_failed"),
        ("PUT", {"If-None-Match": "*"}, JOB, 412, "precondition_failed"),
        ("PUT", {"If-Match": '"1"'}, {**JOB, "priority": 1}, 200, None),
        ("PUT", {"If-Match": '"1"'}, JOB, 412, "precondition_failed"),
        ("PATCH", {"If-Match": '"1"'}, {"priority": 2}, 412, "precondition_failed"),
        ("PATCH", {"If-Match": 'W/"2"'}, {"priority": 2}, 412, "precondition_failed"),
        ("PATCH", {"If-Match": '"7", "2"'}, {"priority": 2}, 200, None),
        ("PATCH", {}, {"priority": 3}, 200, None),
        ("PATCH", {"If-Match": "*"}, {"priority": 4}, 200, None),
        ("DELETE", {"If-Match": '"1"'}, None, 412, "precondition_failed"),
        ("DELETE", {"If-Match": '"5"'}, None, 204, None),
        ("PUT", {"If-Match": '"5"'}, JOB, 412, "precondition_failed"),
    ]
    for place, (method, headers, body, status, code) in enumerate(rows):
        answer = await admin(method, "/v1/jobs/n", body, headers=headers)
        assert answer.status == status, (place, answer.body)
        if code is not None:
            assert answer.code == code, place
        if status == 412 and place < len(rows) - 1:
            assert answer.headers["etag"], "the present revision is named"
    await admin(
        "POST", "/v1/tenants", {"slug": "s", "name": "S", "settings": {"require_if_match": True}}
    )
    there = {"Betimes-Tenant": "s"}
    await admin("PUT", "/v1/jobs/n", JOB, headers={**there, "If-None-Match": "*"})
    for method, body in (("PATCH", {"priority": 1}), ("DELETE", None)):
        answer = await admin(method, "/v1/jobs/n", body, headers=there)
        assert (answer.status, answer.code) == (428, "precondition_required"), method


def is_problem(answer: Answer) -> bool:
    told = answer.json
    return (
        answer.headers["content-type"] == "application/problem+json"
        and told["status"] == answer.status
        and told["detail"] != ""
        and told["request_id"] == answer.headers["request-id"]
    )


async def test_every_operation_refuses_what_it_does_not_know(served: Served, admin: Client) -> None:
    """From the document: an unknown parameter, a wrong method, a wrong version, two keys."""
    told = document(ROUTES, version="0")
    for path, operations in told["paths"].items():
        place = path.replace("{", "").replace("}", "")
        wrong = await admin("TRACE", place)
        assert (wrong.status, is_problem(wrong)) == (405, True), path
        assert set(wrong.headers["allow"].split(", ")) == {one.upper() for one in operations}
        for method, operation in operations.items():
            if operation["operationId"] == "events.stream":
                continue
            typed = await admin(method.upper(), f"{place}?no_such_parameter=1", {})
            assert typed.status in (400, 403, 404, 413, 415), (path, typed.body)
            assert is_problem(typed), path
            if method == "get":
                assert typed.code in ("unknown_parameter", "not_found", "scope_missing"), path
            dated = await admin(method.upper(), place, {}, headers={"API-Version": "1999-01-01"})
            assert (dated.status, dated.code) == (400, "invalid_parameter"), path
    assert not [event for event in served.recorder.events if event.name == "request.failed"]


async def test_a_stream_goes_on_where_it_was_after_a_restart(dsn: str) -> None:
    """`Last-Event-ID` over the death of the process that served the first part."""

    async def events(client: Client, last: str | None, count: int) -> list[tuple[str, str]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        resume = f"last-event-id: {last}\r\n" if last else ""
        head = (
            f"GET /v1/events/stream HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {client.key}\r\n"
        )
        writer.write(f"{head}{resume}\r\n".encode())
        found: list[tuple[str, str]] = []
        identity = ""
        if last is None:
            await reader.readuntil(b"retry: 3000")
            for number in range(count):
                await client("POST", "/v1/jobs", {**JOB, "name": f"n{number}"})
        while len(found) < count:
            line = (await asyncio.wait_for(reader.readline(), 20)).decode().strip()
            if line.startswith("id: "):
                identity = line.removeprefix("id: ")
            if line.startswith("event: "):
                found.append((identity, line.removeprefix("event: ")))
        writer.close()
        return found

    async with a_process(dsn, "never") as client:
        first = await events(client, None, 3)
    async with a_process(dsn, "never") as client:
        await client("POST", "/v1/jobs/n0/pause")
        rest = await events(client, first[0][0], 3)
    assert [kind for _, kind in first] == ["job.created"] * 3
    assert [one for one, _ in rest[:2]] == [one for one, _ in first[1:]], "nothing twice, none lost"
    assert rest[2][1] == "job.paused"


async def test_no_delete_takes_a_body(admin: Client) -> None:
    """It would be ignored, whatever somebody hoped to say by it."""
    deletes = [route for route in ROUTES if route.method == "DELETE"]
    assert len(deletes) > 10
    job = await admin("PUT", "/v1/jobs/n?force=true", JOB)
    assert job.status == 201
    for route in deletes:
        place = route.path.replace("{job}", "n").replace("{", "").replace("}", "")
        refused = await admin("DELETE", place, {"runs": "cancel"})
        assert (refused.status, refused.code) == (400, "invalid_parameter"), route.name
        assert "parameters go into the query" in refused.json["detail"]
    chunked = (
        f"DELETE /v1/jobs/n HTTP/1.1\r\nhost: test\r\nconnection: close\r\n"
        f"authorization: Bearer {admin.key}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    refused = await admin.send(f"{chunked}2\r\n{{}}\r\n0\r\n\r\n".encode())
    assert (refused.status, refused.code) == (400, "invalid_parameter")
    assert (await admin("GET", "/v1/jobs/n")).status == 200
    assert (await admin.send(f"{chunked}0\r\n\r\n".encode())).status == 204
