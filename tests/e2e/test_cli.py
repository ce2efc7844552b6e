"""Real processes: they start on nothing, drain on the first SIGTERM and leave at the second."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_kit import Client
from betimes.embedded import find_binaries
from betimes.webhooks import verify
from embedded_kit import Place
from process_kit import betimes, key_said_in, running
from target_kit import a_target

pytestmark = pytest.mark.db


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def postmaster_of(home: Path) -> int:
    (file,) = (home / "share").rglob("postmaster.pid")
    return int(file.read_text(encoding="utf-8").split()[0])


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def children_of(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in listed.stdout.split()]


def test_dev_starts_on_nothing_and_drains_on_sigterm(home: Path) -> None:
    with running(home, "dev") as dev:
        dev.until("presence.changed")
        postmaster = postmaster_of(home)
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0, dev.said
    assert '"ending":"drained"' in "".join(dev.said)
    assert not is_alive(postmaster)


async def test_dev_delivers_to_this_machine_and_says_that_it_may(home: Path) -> None:
    """A run that is a request arrives, signed with the secret that the API tells."""
    with running(home, "dev", "--no-demo") as dev:
        dev.until("targets on this machine may be called")
        key = key_said_in(dev.until("key for development"))
        port = int(dev.until("api.listening").partition("http://127.0.0.1:")[2].partition('"')[0])
        ask = Client(port, key)
        async with a_target() as target:
            body = {"target": {"type": "http", "url": target.url("/hook")}, "payload": {"n": 1}}
            made = await ask("POST", "/v1/runs", body, headers={"prefer": "wait=20"})
            assert made.json["state"] == "succeeded", made.body
        (seen,) = target.received
        (secret,) = (await ask("GET", "/v1/targets/signing-secret")).json["secrets"]
        delivery = verify(seen.headers, seen.body, secret)
        assert (delivery.run_id, delivery.attempt, seen.body) == (made.json["id"], 1, b'{"n":1}')
        trace = made.json["trace"]["trace_id"]
        assert seen.headers["traceparent"].split("-")[1] == trace
        refused = await ask(
            "POST", "/v1/runs", {"target": {"type": "http", "url": "http://10.0.0.1/"}}
        )
        assert refused.code == "url_not_allowed"
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0


def test_dev_keeps_its_key_and_a_profile_whether_there_is_a_demo_or_not(home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    keys = []
    for demo in ("--no-demo", "--demo", "--no-demo"):
        with running(home, "dev", demo, "--port", port) as dev:
            keys.append(key_said_in(dev.until("key for development")))
            dev.until("by the profile dev")
            dev.until("api.listening")
            known = betimes(home, "whoami", "-o", "json")
            assert known.returncode == 0, known.stderr
            dev.popen.send_signal(signal.SIGTERM)
            assert dev.end() == 0, dev.said
    assert len(set(keys)) == 1


def test_ctrl_c_is_as_good_as_sigterm(home: Path) -> None:
    with running(home, "dev") as dev:
        dev.until("presence.changed")
        dev.popen.send_signal(signal.SIGINT)
        assert dev.end() == 0, dev.said


def test_the_second_sigterm_ends_at_once(home: Path) -> None:
    """With a frozen database the drain would take its whole timeout."""
    with running(home, "dev", "--drain-timeout", "10m") as dev:
        dev.until("presence.changed")
        frozen = children_of(postmaster_of(home))
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            dev.popen.send_signal(signal.SIGTERM)
            dev.until("node.stopping")
            assert dev.popen.poll() is None
            asked_at = time.monotonic()
            dev.popen.send_signal(signal.SIGTERM)
            assert dev.end() == 143, dev.said
            assert time.monotonic() - asked_at < 10
        finally:
            for pid in frozen:
                if is_alive(pid):
                    os.kill(pid, signal.SIGCONT)


def test_a_server_asks_for_migrations_instead_of_making_them(home: Path) -> None:
    refused = betimes(home, "server", "start")
    assert refused.returncode == 1
    assert "`betimes server migrate`" in refused.stderr
    assert "Traceback" not in refused.stderr

    applied = betimes(home, "server", "migrate")
    assert (applied.returncode, applied.stdout.split()[0]) == (0, "0001_expand_tenancy")
    again = betimes(home, "server", "migrate")
    assert (again.returncode, again.stdout) == (0, "")
    assert "up to date" in again.stderr

    with running(home, "server", "--roles", "janitor,worker") as server:
        server.until("presence.changed")
        server.popen.send_signal(signal.SIGTERM)
        assert server.end() == 0, server.said


def test_a_database_that_comes_back_is_used_again(home: Path) -> None:
    with running(home, "dev", "--set", "server.presence_every=200ms") as dev:
        dev.until("presence.changed")
        os.kill(postmaster_of(home), signal.SIGKILL)
        dev.until("outage.began")
        dev.until('"event":"outage.ended","duty":"presence"')
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0, dev.said


async def test_a_database_that_may_lose_work_is_refused_unless_wanted(home: Path) -> None:
    async with Place(home, find_binaries()).server(unsafe_no_fsync=True) as postgres:
        dsn = postgres.dsn()
        assert (
            await asyncio.to_thread(betimes, home, "server", "migrate", "--dsn", dsn)
        ).returncode == 0
        refused = await asyncio.to_thread(betimes, home, "server", "--dsn", dsn)
        assert refused.returncode == 1
        assert "Expected fsync to be on, got 'off'" in refused.stderr
        assert "--unsafe" in refused.stderr
        await asyncio.to_thread(serve_and_stop, home, "server", "--dsn", dsn, "--unsafe")


def serve_and_stop(home: Path, *arguments: str) -> None:
    with running(home, *arguments) as server:
        server.until("presence.changed")
        server.popen.send_signal(signal.SIGTERM)
        assert server.end() == 0, server.said
        assert any("unsafe: expected fsync" in line for line in server.said)
