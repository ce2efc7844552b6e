"""What goes on: watching, listening and forwarding, against a real service."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from api_kit import Client, Served
from betimes import webhooks
from betimes.cli.command import Talk
from betimes.cli.waking import Waker
from betimes.cli.watching import watch
from cli_kit import Said, acall

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]
CREATE = ("job", "create", "--schedule", "every 1h", "--handler", "h")


async def test_watching_prints_what_is_new_and_what_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await acall(*CREATE, "a")
    steps = iter([("job", "pause", "a"), (*CREATE, "b"), ("job", "get", "a"), None])

    def meanwhile(*_: object) -> None:
        """Instead of waiting: somebody does something, until nobody does."""
        step = next(steps)
        if step is None:
            raise KeyboardInterrupt
        done.append(asyncio.run_coroutine_threadsafe(acall(*step), loop).result(30).code)

    loop, done = asyncio.get_running_loop(), list[int]()
    monkeypatch.setattr("betimes.cli.waking.Waker.pause", meanwhile)
    told = await acall("job", "list", "--watch=1s", "--fields", "name,status.state", "-o", "csv")
    assert done == [0, 0, 0]
    assert told.code == 130, "interrupted"
    assert told.out.splitlines() == ["name,status.state", "a,active", "a,paused", "b,active"]


async def test_watching_is_woken_by_events(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks lie ten minutes, so only the stream can have told of the change."""
    admin, looks = await served.admin(), list[float]()
    await admin("POST", "/v1/jobs", {"name": "j", "schedule": "every 1h", "handler": "h"})
    stopped = list[bool]()
    pause = Waker.pause

    def pausing(self: Waker, seconds: float) -> None:
        assert seconds == 600
        looks.append(seconds)
        if len(looks) > 1 and stopped:
            raise KeyboardInterrupt
        pause(self, seconds)

    monkeypatch.setattr(Waker, "pause", pausing)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(
            acall("job", "list", "--watch=10m", "--fields", "name,status.state", "-o", "csv")
        )
        while not looks:
            await admin("GET", "/v1/jobs/j")  # until the first look has seen it active
        await admin("POST", "/v1/jobs/j/pause", {})
        stopped.append(True)
        for priority in count():
            # The stream may have opened after the pause was told.
            if watching.done():
                break
            await admin("PATCH", "/v1/jobs/j", {"priority": priority % 9})
    assert watching.result().code == 130
    assert "j,paused" in watching.result().out


async def test_where_there_is_no_stream_watching_looks(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await served.key(kind="sk", scopes=["jobs:read"])
    monkeypatch.setenv("BETIMES_API_KEY", key)
    looks = list[float]()

    def pausing(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("betimes.sdk.ambient.pause", pausing)
    told = await acall("job", "list", "--watch=1s", "-o", "name")
    assert told.code == 130, told.err
    assert looks[-1] == 1.0, "the first look may be over before the stream is refused"


def test_a_terminal_is_repainted(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    import click  # noqa: PLC0415 -- only here

    from betimes.cli.invocation import Invocation  # noqa: PLC0415 -- as above

    assert home.exists()
    monkeypatch.setattr("betimes.cli.machine.somebody_reads", lambda: True)
    monkeypatch.setattr("betimes.sdk.ambient.pause", lambda _: None)
    painted: list[str] = []
    monkeypatch.setattr("click.echo", lambda text="", **_: painted.append(str(text)))
    talk = Talk(click.Context(click.Command("x"), obj=Invocation()))
    assert watch(talk, lambda: [{"name": "a"}], seconds=1, times=2) == 0
    assert painted[0] == "\x1b[?1049h\x1b[?25l"
    assert painted[-1] == "\x1b[?25h\x1b[?1049l", "the screen is given back"
    assert len(painted) == 4
    assert painted[1].startswith("\x1b[H")


async def listened(served: Served, *arguments: str) -> Said:
    """What `betimes listen` says while jobs are made."""
    admin, number = await served.admin(), count()
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(acall("listen", *arguments))
        while not listening.done():
            body = {"name": f"j{next(number)}", "schedule": "every 1h", "handler": "h"}
            await admin("POST", "/v1/jobs", body)
    return listening.result()


async def test_events_are_shown_as_they_happen(served: Served) -> None:
    told = await listened(served, "--events", "job.*", "--count", "2", "-o", "jsonl")
    events = [json.loads(line) for line in told.out.splitlines()]
    assert [event["type"] for event in events] == ["job.created", "job.created"], told.err


@contextmanager
def receiver() -> Iterator[tuple[int, list[tuple[bytes, dict[str, str]]]]]:
    """Somebody's program under development."""
    got: list[tuple[bytes, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((body, dict(self.headers.items())))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_events_are_forwarded_with_a_signature_that_stays_the_same(served: Served) -> None:
    with receiver() as (port, got):
        secrets = []
        for _ in range(2):
            to = f"127.0.0.1:{port}/hooks"
            told = await listened(served, "--forward-to", to, "--events", "job.*", "--count", "1")
            assert told.out.split()[-1] == "204", told.err
            secrets.append(told.err.partition("signing secret ")[2].split()[0])
    assert secrets[0] == secrets[1]
    body, headers = got[0]
    delivery = webhooks.verify(headers, body, secret=secrets[0])
    event = json.loads(body)
    assert (event["specversion"], event["type"]) == ("1.0", "job.created")
    assert delivery.id == event["id"]
    with pytest.raises(webhooks.BadSignature):
        webhooks.verify(headers, body + b" ", secret=secrets[0])


async def test_nobody_there_to_forward_to_is_told(served: Served) -> None:
    told = await listened(served, "--forward-to", "127.0.0.1:9", "--count", "1")
    assert "got none" in told.out


async def logging_run(served: Served) -> tuple[str, str, Client]:
    """A run that somebody is doing: its id, its lease, and who holds it."""
    worker = served.client(await served.key(kind="wk"))
    made = (await (await served.admin())("POST", "/v1/runs", {"handler": "h"})).json["id"]
    told = await worker("POST", "/v1/workers", {"name": "w", "handlers": ["h"]})
    name = told.json["worker_id"]
    (lease,) = (await worker("POST", f"/v1/workers/{name}/lease", {"wait": 5})).json["runs"]
    return made, lease["lease_id"], worker


@pytest.mark.parametrize("streams", [True, False])
async def test_a_log_is_followed_to_the_end_of_its_run(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    run, lease, worker = await logging_run(served)
    looked = count()

    def looking(_: float) -> None:
        next(looked)

    if not streams:
        object.__setattr__(served.service.settings, "streams_max", 0)
    monkeypatch.setattr("betimes.sdk.ambient.pause", looking)

    async def work() -> None:
        for word in ("one", "two"):
            lines = {"lines": [{"message": word, "level": "info"}]}
            assert (await worker("POST", f"/v1/leases/{lease}/logs", lines)).status < 300
        secret = {"lines": [{"message": "hush", "level": "debug"}]}
        await worker("POST", f"/v1/leases/{lease}/logs", secret)
        assert (await worker("POST", f"/v1/leases/{lease}/complete", {})).status < 300

    async with asyncio.TaskGroup() as group:
        following = group.create_task(acall("run", "logs", run, "-f", "--level", "info"))
        group.create_task(work())
    told = following.result()
    assert told.code == 0, told.err
    assert [line.split()[-1] for line in told.out.splitlines()] == ["one", "two"]
    if streams:
        assert next(looked) == 0, "nobody looked again and again"
