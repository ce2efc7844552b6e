"""Plain enqueueing, logs as they grow, and the export of the audit, over HTTP."""

import asyncio
import csv
import json

from api_kit import Client, Served

HOURLY = {"schedule": "every 1h", "handler": "h"}


async def test_the_body_is_the_payload(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/enqueue/resize", raw=b'{"image": 7}', idem=None)
    assert made.status == 202, made.body
    run = made.json["id"]
    shown = (await admin("GET", f"/v1/runs/{run}?view=full")).json
    assert (shown["handler"], shown["payload"], shown["queue"]) == (
        "resize",
        {"image": 7},
        "default",
    )
    headers = {
        "Betimes-Delay": "PT1H",
        "Betimes-Queue": "mail",
        "Betimes-Priority": "7",
        "Betimes-Retries": "2",
        "Content-Type": "text/plain",
    }
    later = await admin("POST", "/v1/enqueue/send", raw=b"hello", headers=headers)
    shown = (await admin("GET", f"/v1/runs/{later.json['id']}?view=full")).json
    assert (shown["state"], shown["queue"], shown["priority"]) == ("scheduled", "mail", 7)
    assert shown["payload"] == "hello"
    empty = await admin("POST", "/v1/enqueue/ping", idem=None)
    assert empty.status == 202, empty.body
    await admin("POST", "/v1/queues/mail/drain")
    closed = await admin("POST", "/v1/enqueue/send", raw=b"x", headers={"Betimes-Queue": "mail"})
    assert (closed.status, closed.code) == (409, "queue_draining")
    reader = served.client(await served.key(kind="rk"))
    assert (await reader("POST", "/v1/enqueue/x", raw=b"x")).code == "scope_missing"


async def test_wrong_headers_are_pointed_at(admin: Client) -> None:
    for name, value, place in (
        ("Betimes-Priority", "high", "/headers/betimes-priority"),
        ("Betimes-Priority", "77", "/priority"),
        ("Betimes-Delay", "soon", "/delay"),
        ("Betimes-At", "noon", "/at"),
        ("Betimes-Quue", "mail", "/headers/betimes-quue"),
    ):
        bad = await admin("POST", "/v1/enqueue/x", raw=b"x", headers={name: value})
        assert bad.status == 400, (name, bad.body)
        assert [error["pointer"] for error in bad.json["errors"]] == [place], bad.body


async def test_a_log_is_followed_to_its_end(served: Served, admin: Client) -> None:
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json["id"]
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    (leased,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    lease = f"/v1/leases/{leased['lease_id']}"
    await admin("POST", f"{lease}/logs", {"lines": [{"message": "one"}]})
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    path = f"/v1/runs/{run}/logs/stream"
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {admin.key}\r\n"
    writer.write(f"{head}connection: close\r\n\r\n".encode())
    await reader.readuntil(b"id: 1\nevent: line\n")
    first = json.loads((await reader.readuntil(b"\n\n")).removeprefix(b"data: "))
    assert first["message"] == "one"
    await admin("POST", f"{lease}/logs", {"lines": [{"message": "two"}]})
    await reader.readuntil(b"id: 2\n")
    await admin("POST", f"{lease}/complete", {})
    rest = await reader.read(-1)
    assert b'event: end\ndata: {"state":"succeeded"}' in rest
    writer.close()
    await writer.wait_closed()
    resumed = await admin("GET", path, headers={"Last-Event-ID": "1"})
    assert (b'"two"' in resumed.body, b'"one"' in resumed.body) == (True, False)
    bad = await admin("GET", path, headers={"Last-Event-ID": "x"})
    assert (bad.status, bad.code) == (400, "invalid_parameter")


async def test_the_audit_is_exported_whole(served: Served, admin: Client) -> None:
    for number in range(3):
        await admin("POST", "/v1/jobs", {**HOURLY, "name": f"n{number}"})
    told = await admin("POST", "/v1/audit/export", {"action": "jobs.create"})
    assert told.status == 200, told.body
    assert told.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in unchunked(told.body).splitlines()]
    assert [line["action"] for line in lines] == ["jobs.create"] * 3
    listed = (await admin("GET", "/v1/audit?action=jobs.create")).json["items"]
    assert lines == listed
    table = await admin("POST", "/v1/audit/export", {"format": "csv", "action": "jobs.create"})
    rows = list(csv.reader(unchunked(table.body).decode().splitlines()))
    assert (len(rows), rows[0][0]) == (4, "id")
    exports = (await admin("GET", "/v1/audit?action=audit.export")).json["items"]
    assert len(exports) == 2, "looking is an act"
    backwards = {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}
    assert (await admin("POST", "/v1/audit/export", backwards)).status == 400
    other = served.client(await served.key(await served.tenant("other")))
    empty = await other("POST", "/v1/audit/export", {"action": "jobs.create"})
    assert unchunked(empty.body) == b""


def unchunked(body: bytes) -> bytes:
    """The content of a body that was sent in chunks."""
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        found += rest[: int(size, 16)]
        body = rest[int(size, 16) + 2 :]
    return found
