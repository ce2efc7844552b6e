"""A whole node tells: an endpoint is tried, a callback arrives, an alert reaches a chat."""

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_kit import Client
from betimes.webhooks import verify
from process_kit import key_said_in, running
from target_kit import FakeTarget, a_target

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def got(target: FakeTarget, path: str) -> dict[str, Any]:
    """The first message at a path."""
    while not (found := [one for one in target.received if one.path == path]):
        target.arrived.clear()
        await target.arrived.wait()
    told: dict[str, Any] = json.loads(found[0].body)
    return told


async def test_dev_tells_whoever_wants_to_know(home: Path) -> None:
    with running(home, "dev", "--no-demo", "--set", "notify.watch_every=1s") as dev:
        key = key_said_in(dev.until("key for development"))
        port = int(dev.until("api.listening").partition("http://127.0.0.1:")[2].partition('"')[0])
        dev.read_on()
        ask = Client(port, key)
        async with a_target() as target, asyncio.timeout(60):
            hook = {"type": "webhook", "url": target.url("/hook"), "event_types": ["run.dead"]}
            made = await ask("POST", "/v1/endpoints", hook)
            assert made.status == 201, made.body
            tried = await ask("POST", f"/v1/endpoints/{made.json['id']}/test")
            assert tried.json["state"] == "delivered", tried.body
            assert (await got(target, "/hook"))["type"] == "endpoint.test"
            first = target.received[0]
            assert (
                verify(first.headers, first.body, made.json["secret"]).id
                == (first.headers["webhook-id"])
            )
            notify = [{"url": target.url("/done"), "on": ["success"]}]
            body = {"target": {"type": "http", "url": target.url("/")}, "notify": notify}
            run = (await ask("POST", "/v1/runs", body)).json["id"]
            assert (await got(target, "/done"))["data"]["run_id"] == run
            chat = {"type": "chat", "url": target.url("/chat"), "event_types": ["alert.*"]}
            assert (await ask("POST", "/v1/endpoints", chat)).status == 201
            rule = {"condition": "queue_depth", "threshold": 1, "queues": ["nobody"]}
            put = await ask("PUT", "/v1/alert-rules/stuck?force=true", rule)
            assert put.status == 201, put.body
            paused = await ask("POST", "/v1/queues/nobody/pause", {"reason": "test"})
            assert paused.status == 200, paused.body
            assert (
                await ask("POST", "/v1/runs", {"handler": "h", "queue": "nobody"})
            ).status == 202
            assert "alert.firing: stuck" in (await got(target, "/chat"))["text"]
            (alert,) = (await ask("GET", "/v1/alerts?state=firing")).json["items"]
            assert (alert["rule"], alert["subject"]) == ("stuck", "queue:nobody")
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0
