"""Payloads and results sealed in their rows: the API reads them, the database does not."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from api_kit import Client, Served
from api_kit import served as serving
from betimes.store.pool import Lane

CANARY = "word-that-must-not-be-found"
GIVEN = {"canary": CANARY}
TABLES = ("runs", "jobs", "job_revisions", "dead_letters", "attempts", "outbox", "audit")


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """An API that seals."""
    async with serving(dsn, seals=True) as api:
        yield api


async def dump(served: Served) -> str:
    """Every row, with what is binary as text as far as it is."""
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        texts = [
            await connection.fetchval(
                f"SELECT coalesce(string_agg(t::text, ''), '') FROM betimes.{table} AS t"
            )
            for table in TABLES
        ]
        payloads = await connection.fetch(
            "SELECT payload AS bytes FROM betimes.runs UNION ALL SELECT result FROM betimes.runs"
            " UNION ALL SELECT payload FROM betimes.jobs"
            " UNION ALL SELECT payload FROM betimes.job_revisions"
        )
    found = b"".join(row["bytes"] or b"" for row in payloads)
    return "".join(texts) + found.decode(errors="replace")


async def work(served: Served) -> dict[str, Any]:
    """One run through a worker that speaks HTTP; as it was handed out."""
    client = await served.admin()
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": ["noop"], "slots": 10})
    worker = made.json["worker_id"]
    got = await client("POST", f"/v1/workers/{worker}/lease", {"max": 1, "wait": 0})
    (one,) = got.json["runs"]
    done = await client("POST", f"/v1/leases/{one['lease_id']}/complete", {"result": GIVEN})
    assert done.status == 200, done.body
    leased: dict[str, Any] = one
    return leased


async def test_a_run_through_a_worker_that_speaks_http(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/runs", {"handler": "noop", "payload": GIVEN})
    path = f"/v1/runs/{made.json['id']}"
    assert (await work(served))["payload"] == GIVEN
    assert (await admin("GET", f"{path}/payload")).json == GIVEN
    assert (await admin("GET", f"{path}/result")).json == GIVEN
    full = (await admin("GET", f"{path}?view=full")).json
    assert (full["payload"], full["result"]) == (GIVEN, GIVEN)
    assert CANARY not in await dump(served)


async def test_a_job_its_edits_and_its_runs(served: Served, admin: Client) -> None:
    """A merge patch reads what is sealed and keeps it; the history stays readable to who may."""
    job = {"schedule": "every 1h", "handler": "noop", "payload": GIVEN, "name": "sealed"}
    made = await admin("POST", "/v1/jobs", job)
    assert made.status == 201, made.body
    path = f"/v1/jobs/{made.json['id']}"
    assert (await admin("PATCH", path, {"priority": 7})).status == 200
    assert (await admin("GET", f"{path}?view=full")).json["payload"] == GIVEN
    (listed,) = (await admin("GET", "/v1/jobs?view=full")).json["items"]
    assert listed["payload"] == GIVEN
    assert (await admin("POST", f"{path}/run", {})).status in (200, 201, 202)
    assert (await work(served))["payload"] == GIVEN
    assert CANARY not in await dump(served)


async def test_repeating_a_request_still_finds_what_it_made(served: Served, admin: Client) -> None:
    """Fingerprints are of requests, not of what is stored, which is different every time."""
    body = {"handler": "noop", "payload": GIVEN, "dedupe_key": "once"}
    first = await admin("POST", "/v1/runs", body)
    again = await admin("POST", "/v1/runs", body)
    assert first.json["id"] == again.json["id"]
    assert CANARY not in await dump(served)


async def test_nobody_gives_us_what_looks_sealed(admin: Client) -> None:
    raw = b"\x00betimes\x01" + bytes(40)
    answer = await admin("POST", "/v1/enqueue/noop", raw=raw)
    assert answer.status in (400, 422), answer.body
