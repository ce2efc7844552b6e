"""Workers in other languages, written only from the page of the protocol, at real work."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api_kit import Client, Served
from api_kit import served as serving
from runtime_kit import eventually

EXAMPLES = Path(__file__).parents[3] / "examples"
LANGUAGES = {
    "node": (["node"], "worker.mjs", ["node"]),
    "bash": (["bash"], "worker.sh", ["bash", "curl", "jq"]),
}

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """Leases long enough for a busy machine: nobody here takes back what ran out."""
    async with serving(dsn, lease_ttl=timedelta(seconds=15)) as api:
        yield api


@asynccontextmanager
async def foreign(language: str, served: Served) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker of another language on this test's service."""
    command, file, needed = LANGUAGES[language]
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    process = await asyncio.create_subprocess_exec(
        *command,
        str(EXAMPLES / file),
        env={
            **os.environ,
            "BETIMES_URL": f"http://127.0.0.1:{served.port}",
            "BETIMES_API_KEY": await served.key(kind="wk"),
        },
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert b"registered" in await asyncio.wait_for(process.stdout.readline(), 20)
        yield process
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


async def ended(admin: Client, run: str) -> Any:
    async def look() -> Any:
        found = (await admin("GET", f"/v1/runs/{run}?view=full")).json
        return found if found["state"] in {"succeeded", "dead"} else None

    return await eventually(look, seconds=30)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_foreign_worker_does_reports_and_leaves(served: Served, language: str) -> None:
    admin = await served.admin()
    async with foreign(language, served) as process:
        good = await admin(
            "POST", "/v1/runs", {"handler": "sum", "payload": {"numbers": [1, 2, 3]}}
        )
        back = await admin("POST", "/v1/runs", {"handler": "echo", "payload": {"a": ["ä", None]}})
        retry = {"max_attempts": 1}
        bad = await admin("POST", "/v1/runs", {"handler": "sum", "payload": {}, "retry": retry})
        other = await admin("POST", "/v1/runs", {"handler": "not_mine"})
        assert (await ended(admin, good.json["id"]))["result"] == 6
        assert (await ended(admin, back.json["id"]))["result"] == {"a": ["ä", None]}
        failed = await ended(admin, bad.json["id"])
        assert (failed["state"], failed["attempt"]) == ("dead", 1)
        (shown,) = (await admin("GET", "/v1/workers")).json["items"]
        assert set(shown["handlers"]) == {"echo", "sum"}
        process.send_signal(signal.SIGTERM)
        out, _ = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, out.split()[-1]) == (0, b"left")
    assert (await admin("GET", "/v1/workers")).json["items"] == []
    assert (await admin("GET", f"/v1/runs/{other.json['id']}")).json["attempt"] == 0


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_foreign_worker_survives_that_the_service_forgets_it(
    served: Served, language: str
) -> None:
    admin = await served.admin()
    async with foreign(language, served):
        (shown,) = (await admin("GET", "/v1/workers")).json["items"]
        assert (await admin("DELETE", f"/v1/workers/{shown['id']}")).status == 204
        run = await admin("POST", "/v1/runs", {"handler": "echo", "payload": 1})
        assert (await ended(admin, run.json["id"]))["result"] == 1
