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


SHOP = """
from betimes import App, Context
app = App(name="{name}")

@app.task
def {name}(ctx: Context) -> list[object]:
    return ["{name}", ctx.fence]
"""


async def test_two_apps_share_a_queue_and_each_gets_its_own(
    app: App, served: Served, tmp_path: Path
) -> None:
    """Nothing is handed to the app that cannot do it: every run is done under its first fence."""
    names = ("apples", "pears")
    for name in names:
        (tmp_path / f"{name}.py").write_text(SHOP.format(name=name))
    admin, key = await served.admin(), await served.key(kind="wk")
    where = {"BETIMES_URL": str(app.url), "BETIMES_API_KEY": key}

    async def enqueued() -> dict[str, str]:
        """One after the other, alone and together, so that their parcels lie between each other."""
        items = [{"handler": name} for _ in range(10) for name in names]
        made = [(await admin("POST", "/v1/runs", one)).json["id"] for one in items]
        told = await admin("POST", "/v1/runs/batch", {"items": items})
        made += [one["id"] for one in told.json["items"]]
        return dict(zip(made, (one["handler"] for one in items * 2), strict=True))

    wanted = await enqueued()
    async with (
        process(tmp_path, "apples:app", "--grace", "5s", **where),
        process(tmp_path, "pears:app", "--grace", "5s", **where),
    ):
        ended = {run: await _ended(app, run) for run in wanted}
        later = await enqueued()
        ended |= {run: await _ended(app, run) for run in later}
    wanted |= later
    assert len(wanted) == 80
    assert {run: found.result for run, found in ended.items()} == {
        run: [name, 1] for run, name in wanted.items()
    }
    workers = {found.result[0]: set[str]() for found in ended.values()}
    for found in ended.values():
        workers[found.result[0]].add(found.worker_id)
    assert [len(one) for one in workers.values()] == [1, 1]
    assert not workers["apples"] & workers["pears"]


async def _ended(app: App, run: str) -> Any:
    return await eventually(lambda: _result(app, run), seconds=60)


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
