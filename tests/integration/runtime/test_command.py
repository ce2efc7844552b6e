"""`betimes worker run` as a process: on the database, with reload, and what it refuses."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from api_kit import Served
from betimes import App
from runtime_kit import eventually

pytestmark = pytest.mark.timeout(120)

TASKS = """
from betimes import App
app = App(name="reloaded")

@app.task
def answer() -> str:
    return "{answer}"
"""


@asynccontextmanager
async def process(folder: Path, *arguments: str, **more: str) -> AsyncIterator[Any]:
    one = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "betimes", "worker", "run", *arguments),
        cwd=folder,
        env={**os.environ, **more},
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield one
    finally:
        if one.returncode is None:
            os.killpg(one.pid, signal.SIGKILL)
        await one.communicate()


async def test_it_works_directly_on_the_database(
    app: App, dsn: str, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(answer="direct"))
    run = await app.async_client.runs.create(handler="answer")
    async with process(tmp_path, "tasks:app", "--dsn", dsn, "--grace", "5s") as one:
        ended = await eventually(lambda: _result(app, run.id))
        assert ended.result == "direct"
        one.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(one.communicate(), 30)
        assert (one.returncode, b"worker.left" in said) == (0, True), said.decode()


async def _result(app: App, run: str) -> Any:
    found = await app.async_client.runs.get(run, view="full")
    return found if found.state == "succeeded" else None


async def test_it_starts_anew_when_its_code_changes(app: App, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.py"
    tasks.write_text(TASKS.format(answer="one"))
    where = {"BETIMES_URL": str(app.url), "BETIMES_API_KEY": str(app.api_key)}
    async with process(tmp_path, "tasks:app", "--reload", "--grace", "5s", **where) as one:
        first = await app.async_client.runs.create(handler="answer")
        assert (await eventually(lambda: _result(app, first.id))).result == "one"
        tasks.write_text(TASKS.format(answer="another"))

        async def changed() -> bool:
            run = await app.async_client.runs.create(handler="answer")
            ended = await eventually(lambda: _result(app, run.id))
            return bool(ended.result == "another")

        await eventually(changed, seconds=60)
        one.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(one.wait(), 30) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("nowhere:app",), 2, "expected a module 'nowhere'"),
        (("tasks:other",), 2, "there is tasks:app"),
        (("tasks:app", "--tenant", "x"), 2, "--tenant goes with --dsn"),
        (("tasks:app", "--grace", "soon"), 2, "expected a time such as 30s"),
        (("tasks:app", "-c", "0"), 2, "-c"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(answer="x"))
    async with process(tmp_path, *arguments) as one:
        _, said = await asyncio.wait_for(one.communicate(), 30)
        assert (one.returncode, told in said.decode()) == (code, True), said.decode()


async def test_a_wrong_key_ends_it_with_a_sentence(served: Served, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(answer="x"))
    where = {"BETIMES_URL": f"http://127.0.0.1:{served.port}", "BETIMES_API_KEY": "btm_wk_no"}
    async with process(tmp_path, "tasks:app", **where) as one:
        _, said = await asyncio.wait_for(one.communicate(), 30)
        assert one.returncode == 4, said.decode()
        assert b"invalid_credentials" in said
        assert b"Traceback" not in said
