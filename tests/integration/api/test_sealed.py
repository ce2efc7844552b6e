"""Payloads and results sealed in their rows: the API reads them, the database does not."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from api_kit import DEFAULT, Client, Served
from api_kit import served as serving
from betimes.ops.trail import list_events
from betimes.store.pool import Lane

CANARY = "word-that-must-not-be-found"
GIVEN = {"canary": CANARY}


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """An API that seals."""
    async with serving(dsn, seals=True) as api:
        yield api


async def dump(served: Served) -> str:
    """Every row of every table, with what is binary as text as far as it is."""
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        tables = await connection.fetch(
            "SELECT relname AS name FROM pg_class WHERE relnamespace = 'betimes'::regnamespace"
            " AND relkind = 'r'"
        )
        texts = []
        for table in tables:
            rows = await connection.fetch(f'SELECT * FROM betimes."{table["name"]}"')
            texts += [_text(value) for row in rows for value in row]
    return "".join(texts)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


async def leased(served: Served) -> dict[str, Any]:
    """One run in the hands of a worker that speaks HTTP, as it was handed out."""
    client = await served.admin()
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": ["noop"], "slots": 10})
    worker = made.json["worker_id"]
    got = await client("POST", f"/v1/workers/{worker}/lease", {"max": 1, "wait": 0})
    (one,) = got.json["runs"]
    handed: dict[str, Any] = one
    return handed


async def work(served: Served) -> dict[str, Any]:
    """One run through such a worker; as it was handed out."""
    one, client = await leased(served), await served.admin()
    done = await client("POST", f"/v1/leases/{one['lease_id']}/complete", {"result": GIVEN})
    assert done.status == 200, done.body
    return one


async def fail(served: Served, run: dict[str, Any], *, retry: str | None = "never") -> None:
    """Everything that a worker can say about a run, the last word being that it failed."""
    client = await served.admin()
    path = f"/v1/leases/{run['lease_id']}"
    lines = [{"message": f"it said {CANARY}", "fields": GIVEN, "level": "warning"}]
    error = {"type": "CardError", "message": f"bad {CANARY}", "stack": f"at {CANARY}"}
    said = [
        await client("POST", f"{path}/logs", {"lines": lines}),
        await client("POST", f"{path}/progress", {"percent": 40, "message": f"at {CANARY}"}),
        await client("POST", f"{path}/checkpoint", {"data": GIVEN}),
        await client(
            "POST", f"{path}/fail", {"error": error, **({"retry": retry} if retry else {})}
        ),
    ]
    assert [one.status for one in said] == [202, 202, 202, 200], [one.body for one in said]


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


async def test_what_is_said_about_a_run_is_sealed_and_told(served: Served, admin: Client) -> None:
    """Errors, evidence of attempts, logs, progress, checkpoints, events: nothing lies open."""
    hook = {"type": "webhook", "name": "all", "url": "https://example.com/", "event_types": ["*"]}
    assert (await admin("POST", "/v1/endpoints", hook)).status == 201
    made = await admin("POST", "/v1/runs", {"handler": "noop", "retry": {"max_attempts": 3}})
    run = made.json["id"]
    await fail(served, await leased(served), retry=None)
    assert (await admin("POST", f"/v1/runs/{run}/retry", {})).status == 202
    again = await leased(served)
    assert again["checkpoint"] == GIVEN, "the next attempt begins where this one ended"
    await fail(served, again)
    assert CANARY not in await dump(served)

    shown = (await admin("GET", f"/v1/runs/{run}?view=full&include=attempts")).json
    assert shown["error"]["type"] == "CardError"
    assert shown["error"]["message"] == f"bad {CANARY}"
    assert shown["progress"] == {"percent": 40, "message": f"at {CANARY}"}
    assert [one["error"]["stack"] for one in shown["attempts"]] == [f"at {CANARY}"] * 2
    lines = (await admin("GET", f"/v1/runs/{run}/logs")).json["items"]
    assert [one["message"] for one in lines] == [f"it said {CANARY}"] * 2
    assert lines[0]["fields"] == GIVEN
    assert lines[0]["level"] == "warning"
    (listed,) = (await admin("GET", "/v1/runs")).json["items"]
    assert listed["error"]["message"] == f"bad {CANARY}"
    (letter,) = (await admin("GET", "/v1/dead-letters")).json["items"]
    assert letter["error"]["message"] == f"bad {CANARY}"
    one = (await admin("GET", f"/v1/dead-letters/{run}")).json
    assert CANARY in str(one)
    assert CANARY in str((await admin("GET", "/v1/dead-letters/groups")).json)
    assert CANARY in str((await admin("GET", f"/v1/runs/{run}/explain")).json)
    events = await list_events(
        served.desk, DEFAULT, after=UUID(int=0), types=["run.failed"], most=9, settled=False
    )
    told = {"type": "CardError", "message": f"bad {CANARY}"}
    assert [one.body["error"] for one in events] == [told, told]


async def test_a_text_is_found_in_errors_that_are_sealed(served: Served, admin: Client) -> None:
    """And what only looks like it, in the letters of what is sealed, is not."""
    job = (await admin("POST", "/v1/jobs", {"handler": "noop", "schedule": "manual"})).json["id"]
    assert (await admin("POST", f"/v1/jobs/{job}/run", {})).status == 202
    await fail(served, await leased(served))
    for path in ("/v1/runs?q=", "/v1/dead-letters?q=", f"/v1/runs?job={job}&q="):
        assert len((await admin("GET", f"{path}MUST-NOT-be")).json["items"]) == 1
        for text in ("sealed", "a", "another"):
            found = (await admin("GET", f"{path}{text}")).json["items"]
            assert bool(found) is (text == "a"), text


async def test_what_was_said_before_is_read_as_it_is(
    served: Served, admin: Client, dsn: str
) -> None:
    """Sealing is turned on while there are rows that lie open."""
    run = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
    async with serving(dsn, seals=False) as plain:
        await fail(plain, await leased(plain), retry=None)
    assert (await admin("POST", f"/v1/runs/{run}/retry", {})).status == 202
    assert CANARY in await dump(served)
    assert (await leased(served))["checkpoint"] == GIVEN
    shown = (await admin("GET", f"/v1/runs/{run}?include=attempts")).json
    assert shown["attempts"][0]["error"]["message"] == f"bad {CANARY}"
    assert shown["progress"]["message"] == f"at {CANARY}"
    lines = (await admin("GET", f"/v1/runs/{run}/logs")).json["items"]
    assert lines[0]["fields"] == GIVEN


@pytest.mark.parametrize("seals", [True, False])
async def test_nobody_writes_a_note_that_looks_sealed(dsn: str, seals: bool) -> None:
    """It would be unreadable for ever, and hide the run it is about."""
    async with serving(dsn, seals=seals) as api:
        admin = await api.admin()
        run = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
        path = f"/v1/leases/{(await leased(api))['lease_id']}"
        said = {"message": "\x01betimes\x01c2VhbGVk"}
        assert (await admin("POST", f"{path}/progress", said)).status == 202
        lines = {"lines": [{"message": "\x01betimes\x01eA==", "fields": {"sealed": "eA=="}}]}
        assert (await admin("POST", f"{path}/logs", lines)).status == 202
        shown = await admin("GET", f"/v1/runs/{run}")
        assert shown.json["progress"]["message"].startswith("betimes"), shown.body
        (line,) = (await admin("GET", f"/v1/runs/{run}/logs")).json["items"]
        assert line["fields"] == {"sealed": "eA=="}


async def test_a_run_shows_the_sealed_payload_of_its_job(served: Served, admin: Client) -> None:
    job = {"schedule": "every 1h", "handler": "noop", "payload": GIVEN, "name": "sealed"}
    made = await admin("POST", "/v1/jobs", job)
    run = (await admin("POST", f"/v1/jobs/{made.json['id']}/run", {})).json
    path = f"/v1/runs/{run.get('id') or run['run_id']}"
    assert (await admin("GET", f"{path}/payload")).json == GIVEN
    assert (await admin("GET", f"{path}?view=full")).json["payload"] == GIVEN


async def test_what_is_said_goes_with_the_keys_of_its_tenant(served: Served, admin: Client) -> None:
    run = (await admin("POST", "/v1/runs", {"handler": "noop"})).json["id"]
    await fail(served, await leased(served))
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("DELETE FROM betimes.data_keys")
    for path in (f"runs/{run}", f"runs/{run}/logs", "dead-letters"):
        answer = await admin("GET", f"/v1/{path}")
        assert CANARY not in answer.body.decode()
        assert answer.json["code"] == "vault_locked", answer.body


async def test_what_many_jobs_are_to_get_is_sealed_until_they_have_it(
    served: Served, admin: Client
) -> None:
    """The operation writes it down, and is kept for a week."""
    job = {"schedule": "every 1h", "handler": "noop", "name": "one"}
    assert (await admin("POST", "/v1/jobs", job)).status == 201
    body = {"action": "set", "set": {"payload": GIVEN}, "filter": {}, "confirm_count": 1}
    body["operation_id"] = "op_01M7JECAC6G00T9EF5DFTRGPV9"
    begun = await admin("POST", "/v1/jobs/bulk", body)
    assert begun.status == 202, begun.body
    assert (await admin("POST", "/v1/jobs/bulk", body)).status == 202, "asked twice, done once"
    other = {**body, "set": {"payload": {"another": 1}}}
    assert (await admin("POST", "/v1/jobs/bulk", other)).status == 409
    assert CANARY not in await dump(served)
    while await served.operate():
        pass
    assert (await admin("GET", "/v1/jobs/one?view=full")).json["payload"] == GIVEN
    assert CANARY not in await dump(served)


async def test_parcels_tell_the_payload_of_a_job_as_it_was_given(
    served: Served, admin: Client
) -> None:
    """Opened once for the definition, and not told where every run has its own."""
    job = {"schedule": "every 1h", "handler": "noop", "payload": GIVEN, "name": "sealed"}
    made = (await admin("POST", "/v1/jobs", job)).json["id"]
    client = served.client(await served.key(kind="wk"))
    worker = (await client("POST", "/v1/workers", {"name": "w", "handlers": ["noop"]})).json
    path = f"/v1/workers/{worker['worker_id']}/parcels"
    for own in ({}, {"payload_override": {"own": 1}}):
        assert (await admin("POST", f"/v1/jobs/{made}/run", own)).status == 202
        answer = (await client("POST", path, {"max": 10, "wait": 0})).json
        (definition,) = answer["definitions"]
        ((run,),) = (one["runs"] for one in answer["parcels"])
        assert run[5] == own.get("payload_override")
        assert definition.get("payload") == (None if own else GIVEN)
        ended = {"lease_id": answer["parcels"][0]["lease_id"], "succeeded": [{"runs": [run[0]]}]}
        await client("POST", "/v1/leases/reports", {"parcels": [ended]})
