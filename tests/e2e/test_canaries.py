"""A thousand secrets in use, and not one of them anywhere it should not be."""

import asyncio
import json
import shutil
import signal
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api_kit import Answer, Client
from betimes.embedded import EmbeddedPostgres, find_binaries
from embedded_kit import RealClock
from process_kit import betimes, key_said_in, running
from target_kit import Received, a_target, answer

pytestmark = [pytest.mark.db, pytest.mark.timeout(240)]
SECRETS = 1_000
AT_ONCE = 20
AUTHS: list[dict[str, Any]] = [
    {"auth": {"type": "bearer"}},
    {"auth": {"type": "basic", "username": "me"}},
    {"auth": {"type": "header", "header": "x-key"}},
    {"headers": {"x-token": "Token {{secret:NAME}}"}},
]
PAGES = (
    *(
        "jobs?view=full",
        "runs?limit=1000&view=full",
        "dead-letters?limit=1000",
        "secrets?limit=1000",
    ),
    *("audit?limit=1000", "events?limit=1000", "targets", "queues", "whoami", "openapi.json"),
)


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def canary(number: int) -> str:
    return f"canary{number:04d}x7d1f0c55e2b94a"


def forms(number: int) -> list[bytes]:
    """As it is, and in the word that a password makes with its name."""
    text = canary(number).encode()
    return [text, b64encode(b"me:" + text).rstrip(b"="), b64encode(text).rstrip(b"=")]


NEEDLES = [b"canary", *(form for number in (0, 1, 2, 999) for form in forms(number)[1:])]
"""What all of them have in common, and some of them in other words."""


def hits(content: bytes) -> int:
    return sum(content.count(needle) for needle in NEEDLES)


def test_the_needles_would_be_found() -> None:
    """Otherwise finding none would mean nothing."""
    for number in (0, 500, 999):
        assert hits(b"x" + canary(number).encode() + b"y")
    assert hits(b"authorization: Basic " + b64encode(b"me:" + canary(2).encode()))


async def careless(received: Received, writer: asyncio.StreamWriter) -> None:
    """Answers with everything it was told; every second time that it does not like it."""
    number = int(received.path.rpartition("/")[2])
    body = json.dumps(received.headers).encode()
    sent = received.headers.get("authorization") or received.headers.get("x-key", "")
    writer.write(answer(404 if number % 2 else 200, body, {"x-echo": sent}))


async def at_once(work: list[Any]) -> list[Any]:
    """A few at a time."""
    done = []
    for start in range(0, len(work), AT_ONCE):
        done += await asyncio.gather(*work[start : start + AT_ONCE])
    return done


@asynccontextmanager
async def the_database(home: Path) -> AsyncIterator[str]:
    """The address of the database of a node that runs."""
    async with EmbeddedPostgres(
        data=home / "share" / "betimes",
        binaries=find_binaries(None),
        clock=RealClock(),
        password_factory=lambda: "unused",
    ) as server:
        yield server.dsn()


def dumped(dsn: str) -> bytes:
    """Everything that pg_dump says about a database."""
    done = subprocess.run(
        [find_binaries(None).tool("pg_dump"), dsn], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_under(folder: Path) -> bytes:
    """Tables, indexes, the write-ahead log, server logs: whatever lies there, as it lies there."""
    return b"".join(
        file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_socket()
    )


def item(target: Any, number: int) -> dict[str, Any]:
    name = f"s{number:04d}"
    text = json.dumps(AUTHS[number % len(AUTHS)]).replace("NAME", name)
    with_names: dict[str, Any] = json.loads(text)
    if "auth" in with_names:
        with_names["auth"]["secret"] = name
    whole = {"type": "http", "url": target.url(f"/echo/{number}"), **with_names}
    return {"target": whole, "retry": {"max_attempts": 1}}


async def ended(ask: Client, *, count: int) -> list[dict[str, Any]]:
    """Every run, once all of them are over."""
    while True:
        page = await ask("GET", "/v1/runs?limit=1000")
        # A node that is overloaded asks us to come back.
        assert page.status in (200, 503), page.body
        items = page.json.get("items", ())
        over = [one for one in items if one["state"] in ("succeeded", "dead")]
        if len(over) == count:
            return over
        await asyncio.sleep(0.2)


async def crawled(ask: Client, runs: list[dict[str, Any]]) -> bytes:
    """What the API says about everything."""
    pages: list[Answer] = [await ask("GET", f"/v1/{page}") for page in PAGES]
    for run in runs[:: len(runs) // 100]:
        pages.append(await ask("GET", f"/v1/runs/{run['id']}?view=full&include=attempts"))
        pages.append(await ask("GET", f"/v1/runs/{run['id']}/result"))
    assert all(page.status < 500 for page in pages)
    return b"".join(page.body for page in pages)


async def test_a_thousand_secrets_in_use_are_found_nowhere(home: Path) -> None:
    """Not in a dump or file of the database, in the log, or in answers; with keys replaced."""
    with running(home, "dev", "--no-demo", "--log-level", "debug") as dev:
        key = key_said_in(dev.until("key for development"))
        port = int(dev.until("api.listening").partition("http://127.0.0.1:")[2].partition('"')[0])
        dev.read_on()
        ask = Client(port, key)
        async with a_target(behave=careless) as target:
            put = await at_once(
                [
                    ask(
                        "PUT",
                        f"/v1/secrets/s{number:04d}",
                        {"value": canary(number), "origins": ["*"]},
                    )
                    for number in range(SECRETS)
                ]
            )
            assert {one.status for one in put} == {201}
            items = [item(target, number) for number in range(SECRETS)]
            first, second = items[: SECRETS // 2], items[SECRETS // 2 :]
            assert (await ask("POST", "/v1/runs/batch", {"items": first})).status == 202
            await ended(ask, count=len(first))
            rotated = betimes(home, "vault", "rotate")
            assert f"{SECRETS} things were sealed anew" in rotated.stdout, rotated.stderr
            assert (await ask("POST", "/v1/runs/batch", {"items": second})).status == 202
            runs = await ended(ask, count=SECRETS)
        seen = b"".join(str(one.headers).encode() for one in target.received)
        unseen = [n for n in range(SECRETS) if not any(form in seen for form in forms(n))]
        assert unseen == [], [
            one["error"] for one in runs if one["error"] and one["error"]["type"] != "Http404"
        ]
        assert sum(one["state"] == "dead" for one in runs) == SECRETS // 2
        answers = await crawled(ask, runs) + b"".join(one.body for one in put)
        async with the_database(home) as dsn:
            dump = dumped(dsn)
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0
    log = "".join(dev.said).encode()
    assert dump.count(b"[hidden]") >= SECRETS // 2, "evidence was kept, without them"
    assert b"/echo/999" in dump
    found = {
        "dump": hits(dump),
        "files": hits(files_under(home / "share")),
        "log": hits(log),
        "answers": hits(answers),
    }
    assert found == dict.fromkeys(found, 0)
    (keys,) = (home / "share").glob("*.keys")
    assert keys.stat().st_mode & 0o777 == 0o600


WORD = "sparrow7d1f0c55"


async def chatty(received: Received, writer: asyncio.StreamWriter) -> None:
    """Answers with what it was given, in body and headers; only once with success."""
    number = int(received.path.rpartition("/")[2])
    status = 404 if number % 2 else 200
    writer.write(answer(status, b"got " + received.body, {"x-echo": received.body.decode()}))


async def said_by_a_worker(ask: Client) -> str:
    """A run about which a worker says all it can, and which fails; its id."""
    made = await ask("POST", "/v1/runs", {"handler": "sparrow", "payload": {"word": WORD}})
    joined = await ask("POST", "/v1/workers", {"name": "w", "handlers": ["sparrow"], "slots": 1})
    path = f"/v1/workers/{joined.json['worker_id']}/lease"
    (run,) = (await ask("POST", path, {"max": 1, "wait": 10})).json["runs"]
    lease = f"/v1/leases/{run['lease_id']}"
    line = {"message": f"saw a {WORD}", "fields": {"bird": WORD}}
    error = {"type": "Bird", "message": f"a {WORD}", "stack": f"at {WORD}"}
    told = [
        await ask("POST", f"{lease}/logs", {"lines": [line]}),
        await ask("POST", f"{lease}/progress", {"percent": 1, "message": f"with a {WORD}"}),
        await ask("POST", f"{lease}/checkpoint", {"data": {"bird": WORD}}),
        await ask("POST", f"{lease}/fail", {"error": error, "retry": "never"}),
    ]
    assert all(one.status < 300 for one in told), [one.body for one in told]
    return str(made.json["id"])


async def test_what_is_sealed_is_found_in_no_file_of_the_database(home: Path) -> None:
    """Payloads, results, evidence, errors, logs, notes, answers: told, and nowhere to be read."""
    sealed = ("--set", "vault.payloads=sealed")
    with running(home, "dev", "--no-demo", "--log-level", "debug", *sealed) as dev:
        key = key_said_in(dev.until("key for development"))
        port = int(dev.until("api.listening").partition("http://127.0.0.1:")[2].partition('"')[0])
        dev.read_on()
        ask = Client(port, key)
        async with a_target(behave=chatty) as target:
            hook = {"type": "webhook", "name": "all", "event_types": ["*"], "payload": "full"}
            made = await ask("POST", "/v1/endpoints", {**hook, "url": target.url("/hook/0")})
            assert made.status == 201, made.body
            items = [
                {
                    "target": {"type": "http", "url": target.url(f"/echo/{number}")},
                    "payload": {"word": WORD},
                    "retry": {"max_attempts": 1},
                }
                for number in range(20)
            ]
            assert (await ask("POST", "/v1/runs/batch", {"items": items})).status == 202
            failed = await said_by_a_worker(ask)
            await ended(ask, count=len(items) + 1)
            deliveries: list[dict[str, Any]] = []
            while not any(one["response_snippet"] for one in deliveries):
                await asyncio.sleep(0.2)
                sent = await ask("GET", f"/v1/endpoints/{made.json['id']}/deliveries")
                deliveries = sent.json["items"]
        shown = await ask("GET", f"/v1/runs/{failed}?view=full&include=attempts")
        lines = await ask("GET", f"/v1/runs/{failed}/logs")
        assert shown.body.count(WORD.encode()) >= 4, shown.body
        assert lines.body.count(WORD.encode()) == 2, lines.body
        runs = (await ask("GET", "/v1/runs?limit=100")).json["items"]
        dead = next(one for one in runs if one.get("error", {}).get("type") == "Http404")
        told = await ask("GET", f"/v1/runs/{dead['id']}?include=attempts")
        assert told.body.count(WORD.encode()) == 2, told.body
        async with the_database(home) as dsn:
            dump = dumped(dsn)
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0
    log = "".join(dev.said).encode()
    found = {"dump": dump, "files": files_under(home / "share"), "log": log}
    assert b"Http404" in dump, "types of errors stay readable"
    word = WORD.encode()
    ways = (word, word.hex().encode(), b64encode(word).rstrip(b"="))
    counted = {name: sum(map(text.count, ways)) for name, text in found.items()}
    assert counted == dict.fromkeys(found, 0)
