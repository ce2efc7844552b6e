"""Inputs that break Python or PostgreSQL get a sentence and a 4xx."""

import asyncio
from typing import Any

import pytest

from api_kit import Client, Served, served

BIG = "9" * 5_000
BODIES: dict[str, bytes] = {
    "nan": b'{"schedule": "every 1h", "payload": NaN}',
    "infinity": b'{"schedule": "every 1h", "payload": -Infinity}',
    "too large a number": b'{"schedule": "every 1h", "payload": 1e999}',
    "duplicate names": b'{"schedule": "every 1h", "schedule": "every 2h"}',
    "duplicates inside": b'{"schedule": "every 1h", "payload": {"a": 1, "a": 2}}',
    "deep": b'{"schedule": "every 1h", "payload": ' + b"[" * 1_100 + b"]" * 1_100 + b"}",
    "deep objects": b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    "long integer": f'{{"schedule": "every 1h", "payload": {BIG}}}'.encode(),
    "65 bits": b'{"schedule": "every 1h", "payload": 36893488147419103232}',
    "half a surrogate": b'{"schedule": "every 1h", "payload": "\\ud800"}',
    "half a surrogate as a name": b'{"schedule": "every 1h", "payload": {"\\udfff": 1}}',
    "escaped nul": b'{"schedule": "every 1h", "payload": "\\u0000"}',
    "nul in a name": b'{"schedule": "every 1h", "name": "a\\u0000b"}',
    "raw nul": b'{"schedule": "every 1h", "payload": "\x00"}',
    "not utf-8": b'{"schedule": "every 1h", "payload": "\xff\xfe"}',
    "utf-16": '{"schedule": "every 1h"}'.encode("utf-16"),
    "bom": b'\xef\xbb\xbf{"schedule": "every 1h"}',
    "no json": b"schedule=every",
    "nothing": b"",
    "a list": b"[]",
    "text": b'"x"',
    "null": b"null",
    "trailing": b'{"schedule": "every 1h"} x',
}
SCHEDULES: dict[str, Any] = {
    "every second of cron": {"type": "cron", "expr": "*/0 * * * *"},
    "30 February": {"type": "cron", "expr": "0 0 30 2 *"},
    "long list": {"type": "cron", "expr": ",".join(["1"] * 10_000) + " * * * *"},
    "zone of the host": {"type": "cron", "expr": "0 0 * * *", "timezone": "localtime"},
    "zone outside": {"type": "cron", "expr": "0 0 * * *", "timezone": "../../etc/passwd"},
    "zone nul": {"type": "cron", "expr": "0 0 * * *", "timezone": "UTC\x01"},
    "year 9999": {"type": "once", "at": "9999-12-31T23:59:59Z"},
    "leap second": {"type": "once", "at": "2026-12-31T23:59:60Z"},
    "infinity": {"type": "once", "at": "infinity"},
    "past": {"type": "once", "at": "2001-01-01T00:00:00Z"},
    "zero rate": {"type": "interval", "every": "PT0S"},
    "negative rate": {"type": "interval", "every": -5},
    "no type": {"expr": "* * * * *"},
    "wrong type": {"type": 7},
    "nested unions": {"type": "union", "of": [{"type": "union", "of": []}]},
    "words": "sometime soonish",
    "empty": "",
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_is_refused(served: Served, admin: Client, name: str) -> None:
    answer = await admin(
        "POST", "/v1/jobs", raw=BODIES[name], headers={"content-type": "application/json"}
    )
    assert 400 <= answer.status < 500, answer.body
    assert answer.json["detail"]
    assert not [event for event in served.recorder.events if event.name == "request.failed"]


async def test_schedules_are_refused(served: Served, admin: Client) -> None:
    for name, schedule in SCHEDULES.items():
        answer = await admin("POST", "/v1/jobs", {"schedule": schedule, "handler": "h"})
        assert 400 <= answer.status < 500, (name, answer.body)
        preview = await admin("POST", "/v1/schedules/preview", {"schedule": schedule})
        assert preview.status < 500, (name, preview.body)
    assert not [event for event in served.recorder.events if event.name == "request.failed"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/jobs?nme=x", "unknown_parameter"),
        ("/v1/jobs?limit=0", "invalid_parameter"),
        ("/v1/jobs?queue=", "invalid_parameter"),
        ("/v1/jobs?queue=a,,b", "invalid_parameter"),
        ("/v1/jobs?limit=-1", "invalid_parameter"),
        ("/v1/jobs?limit=x", "invalid_parameter"),
        ("/v1/jobs?limit=1&limit=2", "invalid_parameter"),
        ("/v1/jobs?cursor=c1.AAAA", "cursor_invalid"),
        ("/v1/jobs?cursor=x", "cursor_invalid"),
        ("/v1/jobs?state=flying", "invalid_parameter"),
        ("/v1/jobs?name_prefix=%00", "invalid_parameter"),
        ("/v1/jobs?name_prefix=%ff", "invalid_parameter"),
        ("/v1/jobs?next_fire_after=9999-12-31T23:59:59Z", "invalid_parameter"),
        ("/v1/jobs/%00", "not_found"),
        ("/v1/jobs/%ff", "not_found"),
        ("/v1/jobs/job_ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "not_found"),
        ("/v1/jobs/job_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "not_found"),
        ("/v1/runs/run_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "not_found"),
        ("/v1/nothing", "not_found"),
        ("/v1/jobs/" + "x" * 600, "not_found"),
        ("/v1/jobs?" + "a=1&" * 200, "invalid_parameter"),
    ],
)
async def test_a_path_or_query_is_refused(admin: Client, path: str, code: str) -> None:
    answer = await admin("GET", path)
    assert (answer.status // 100, answer.code) == (4, code), answer.body


async def test_media_types_methods_and_sizes(admin: Client) -> None:
    plain = await admin("POST", "/v1/jobs", raw=b"{}", headers={"content-type": "text/plain"})
    assert plain.code == "unsupported_media_type"
    packed = await admin(
        "POST",
        "/v1/jobs",
        raw=b"\x1f\x8b",
        headers={"content-type": "application/json", "content-encoding": "gzip"},
    )
    assert packed.code == "unsupported_media_type"
    method = await admin("DELETE", "/v1/jobs")
    assert (method.code, method.headers["allow"]) == ("method_not_allowed", "GET, POST")
    large = b'{"schedule": "every 1h", "payload": "' + b"x" * (1 << 20) + b'"}'
    answer = await admin(
        "POST", "/v1/jobs", raw=large, headers={"content-type": "application/json"}
    )
    assert (answer.status, answer.code) == (413, "payload_too_large")
    payload = {"schedule": "every 1h", "handler": "h", "payload": "x" * 300_000}
    assert (await admin("POST", "/v1/jobs", payload)).code == "payload_too_large"


async def test_idempotency_keys_follow_the_draft(admin: Client) -> None:
    body = {"schedule": "every 1h", "handler": "h"}
    assert (await admin("POST", "/v1/jobs", body, idem=None)).code == "idempotency_key_required"
    long = await admin("POST", "/v1/jobs", body, idem="x" * 256)
    assert (long.status, long.code) == (400, "idempotency_key_invalid")
    first = await admin("POST", "/v1/jobs", body, idem='"quoted"')
    again = await admin("POST", "/v1/jobs", body, idem="quoted")
    assert (again.status, again.body) == (first.status, first.body)
    other = await admin("POST", "/v1/jobs", {**body, "priority": 1}, idem="quoted")
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    refused = await admin("POST", "/v1/jobs", {"schedule": "every 0s"}, idem="free")
    assert refused.status == 422
    fine = await admin("POST", "/v1/jobs", body, idem="free")
    assert fine.status == 201
    both = await asyncio.gather(*(admin("POST", "/v1/jobs", body, idem="race") for _ in range(8)))
    assert len({answer.body for answer in both if answer.status == 201}) == 1
    assert {answer.status for answer in both} <= {201, 409}


async def test_what_is_not_http_gets_a_problem(served: Served) -> None:
    client = served.client(None)
    answer = await client.send(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n")
    assert (answer.status, answer.code) == (400, "malformed_request")
    many = "".join(f"x-{n}: 1\r\n" for n in range(150))
    answer = await client.send(f"GET /healthz HTTP/1.1\r\nhost: x\r\n{many}\r\n".encode())
    assert (answer.status, answer.code) == (431, "headers_too_large")
    smuggled = (
        b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert (await client.send(smuggled)).status in (400, 405)


async def test_slow_clients_and_crowds_are_let_go(dsn: str) -> None:
    from datetime import timedelta  # noqa: PLC0415 -- only here

    quick = timedelta(milliseconds=200)
    async with served(dsn, header_timeout=quick, body_timeout=quick, connections_max=3) as api:
        client = api.client(None)
        head = await client.send(b"GET /healthz HTTP/1.1\r\nhost:")
        assert (head.status, head.code) == (408, "request_timeout")
        body = await client.send(
            b"POST /v1/schedules/parse HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
            + (await api.key()).encode()
            + b"\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )
        assert body.status == 408
        crowd = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(3)]
        refused = await client("GET", "/healthz")
        assert (refused.status, refused.code) == (429, "rate_limited")
        for _, writer in crowd:
            writer.close()
            await writer.wait_closed()


REVIEWED = "FREQ=SECONDLY;COUNT=99999;BYHOUR=21;BYMINUTE=30;BYSECOND=2"
EXPENSIVE = "FREQ=SECONDLY;INTERVAL=99991;BYHOUR=3;BYMINUTE=7;BYSECOND=9;COUNT=100000"


async def test_a_rule_with_a_large_count_is_answered_from_its_budget(
    served: Served, admin: Client
) -> None:
    """Walked one by one it took 38 seconds, in which nothing else of the node was answered."""
    asked = {"schedule": {"type": "rrule", "expr": REVIEWED}}
    told = await admin("POST", "/v1/schedules/preview", asked)
    assert told.status == 200
    assert told.json["per_day"] == 1.0


async def test_a_rule_that_costs_too_much_is_refused_everywhere(
    served: Served, admin: Client
) -> None:
    """At a preview, a creation and in a batch, with what to do about it."""
    schedule = {"type": "rrule", "expr": EXPENSIVE}
    looked = await admin("POST", "/v1/schedules/preview", {"schedule": schedule})
    made = await admin("POST", "/v1/jobs", {"schedule": schedule, "handler": "x"})
    for told in (looked, made):
        assert (told.status, told.json["code"]) == (422, "schedule_too_expensive")
        assert "COUNT" in told.json["detail"]
    many = [{"schedule": schedule, "handler": "x"}, {"schedule": "every 1h", "handler": "x"}]
    told = await admin("POST", "/v1/jobs/batch", {"items": many})
    assert (told.status, told.json["code"]) == (422, "schedule_too_expensive")
    assert told.json["errors"][0]["pointer"].startswith("/items/0/schedule")
