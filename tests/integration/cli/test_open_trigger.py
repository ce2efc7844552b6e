"""Events at will, pages in the browser, and jobs that begin paused, against a real service."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from api_kit import Served
from cli_kit import acall

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]
CREATE = ("job", "create", "--schedule", "every 1h", "--handler", "h")


def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to show."""
    opened: list[str] = []

    def show(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    return opened


async def test_an_event_is_made_and_heard(served: Served) -> None:
    admin = await served.admin()
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(
            acall("listen", "--events", "run.dead", "--count", "1", "-o", "jsonl")
        )
        while not listening.done():
            body = {"type": "run.dead", "data": {"queue": "mail"}}
            made = await admin("POST", "/v1/events/trigger", body)
            assert made.status == 201, made.json
    heard = json.loads(listening.result().out.splitlines()[0])
    assert heard["type"] == "run.dead"
    assert heard["data"]["queue"] == "mail"
    assert heard["data"]["is_test"] is True, "nobody takes it for a run that died"
    assert heard["data"]["reason"] == "RETRIES_EXHAUSTED", "the rest is the example of the type"
    assert heard["id"].startswith("evt_")


async def test_an_event_goes_to_endpoints_and_into_the_audit(served: Served) -> None:
    admin = await served.admin()
    made = await acall("trigger", "queue.paused", "--subject", "mail", "-o", "json")
    event = json.loads(made.out)
    assert event["subject"] == "mail"
    acts = (await admin("GET", "/v1/audit")).json["items"]
    assert acts[0]["action"] == "events.trigger"
    assert acts[0]["resource"] == event["id"]


async def test_an_event_of_no_type_is_refused_with_what_there_is() -> None:
    told = await acall("trigger", "run.exploded")
    assert told.code == 1
    assert "expected a type of event such as run.dead" in told.err
    large = await acall("trigger", "run.dead", "--data", json.dumps({"note": "x" * 20_000}))
    assert large.code == 1
    assert "at most 16384 bytes" in large.err


async def test_the_same_key_makes_the_same_event() -> None:
    first, again = [
        json.loads((await acall("trigger", "run.dead", "--idempotency-key", "k", "-o", "json")).out)
        for _ in range(2)
    ]
    assert first["id"] == again["id"]


async def test_a_page_is_opened_or_what_there_is_instead(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = browser(monkeypatch)
    told = await acall("open")
    assert told.code == 0, told.err
    assert "no console" in told.err
    assert opened == [f"http://127.0.0.1:{served.port}/v1/reference"]
    printed = await acall("open", "--reference", "--print")
    assert printed.out == f"http://127.0.0.1:{served.port}/v1/reference\n"
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    alone = await acall("open", "--reference")
    assert (alone.code, alone.out) == (1, printed.out), "no browser: the address is told"


async def test_a_page_that_is_not_there_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("nothing to open"))
    await acall(*CREATE, "report")
    told = await acall("open", "report")
    assert told.code == 3
    assert "betimes job get report" in told.err
    assert (await acall("open", "nobody")).code == 3
    assert (await acall("open", "report", "--reference")).code == 2


async def test_a_page_of_a_console_is_opened_at_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = browser(monkeypatch)
    monkeypatch.setattr("betimes.cli.open.has_page", lambda *_: True)  # there will be one
    job = json.loads((await acall(*CREATE, "report", "-o", "json")).out)
    assert (await acall("open", "report")).code == 0
    assert opened[0].endswith(f"/jobs/{job['id']}")


async def test_a_job_may_begin_paused(served: Served) -> None:
    admin = await served.admin()
    made = await acall(
        *CREATE, "later", "--paused", "--pause-reason", "not yet", "-o", "json"
    )  # fmt: skip
    job = json.loads(made.out)
    assert job["status"]["state"] == "paused", made.err
    assert job["status"]["pause"]["reason"] == "not yet"
    assert job["status"].get("next_fire_at") is None
    runs = (await admin("GET", f"/v1/runs?job={job['id']}")).json["items"]
    assert runs == [], "nothing was planned"
    resumed = json.loads((await acall("job", "resume", "later", "-o", "json")).out)
    assert resumed["status"]["state"] == "active"
    assert resumed["status"]["next_fire_at"]
    refused = await acall(*CREATE, "x", "--pause-reason", "why")
    assert refused.code == 1
    assert "expected paused: true" in refused.err
    patched = await admin("PATCH", "/v1/jobs/later", {"paused": True}, headers={"if-match": '"r2"'})
    assert patched.status in (400, 412, 422), patched.json


async def test_a_pause_travels_with_an_export(home: Path) -> None:
    await acall(*CREATE, "later", "--paused", "--pause-reason", "not yet")
    await acall(*CREATE, "now")
    text = (await acall("export")).out
    jobs = {job["name"]: job for job in yaml.safe_load(text)["jobs"]}
    assert jobs["later"]["paused"] is True
    assert jobs["later"]["pause_reason"] == "not yet"
    assert "paused" not in jobs["now"]
    (home / "jobs.yaml").write_text(text)
    for name in ("later", "now"):
        await acall("job", "delete", name, "--yes")
    assert "2 created" in (await acall("import", "betimes", "jobs.yaml")).out
    states = json.loads((await acall("job", "list", "-o", "json")).out)
    assert {job["name"]: job["status"]["state"] for job in states} == {
        "later": "paused",
        "now": "active",
    }


async def test_fires_ahead_go_into_a_calendar(home: Path) -> None:
    await acall("job", "create", "daily", "--schedule", "0 9 * * *", "--handler", "h")
    await acall("job", "create", "often", "--schedule", "every 1m", "--handler", "h")
    await acall(*CREATE, "later", "--paused")
    told = await acall("export", "--format", "ics", "--days", "10", "--to", "fires.ics")
    assert told.code == 1, "something could not be told"
    assert "often was left out: it fires 1,000 times or more in 10 days" in told.err
    assert "later was left out: it is paused" in told.err
    text = (home / "fires.ics").read_bytes().decode()
    assert text.count("BEGIN:VEVENT\r\n") == 10
    assert text.count("T090000Z\r\n") == 10
    assert "SUMMARY:daily\r\n" in text


async def test_a_node_is_asked_to_go_by_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "nobody-here")
    told = await acall("server", "drain", "--yes")
    assert told.code == 3, told.err
    assert "nobody-here" in told.err
    assert (await acall("server", "drain", "other")).code == 2, "nobody can be asked"


async def test_the_load_ahead_in_hours() -> None:
    await acall(*CREATE, "a")
    told = await acall("forecast", "--hours", "3", "--step", "1h", "--by", "queue", "-o", "json")
    assert told.code == 0, told.err
    assert {one["group"] for one in json.loads(told.out)} == {"default"}
