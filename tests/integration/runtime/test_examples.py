"""The examples of the page about tasks, as they stand there, with stand-ins for other services."""

import asyncio
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from api_kit import Served
from betimes import App, Context, WorkflowBuilder, WorkflowRunFailed
from betimes.inbox import SCHEMA
from betimes.runtime.dead import DeadRun
from betimes.sdk import errors
from betimes.store.pool import Lane
from betimes.webhooks import BadSignature
from notify_kit import a_dispatcher, an_event
from runtime_kit import advancing, eventually, http, working
from target_kit import a_target

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "tasks.md"
BLOCK = re.compile(r"<!-- run: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
BLOCKS = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def names(app: App) -> dict[str, Any]:
    """What the blocks may use besides their own imports."""
    return {"app": app, "Context": Context, "__name__": "page"}


def execute(block: str, names: dict[str, Any]) -> None:
    """One block of the page; annotations are resolved where it was defined."""
    exec(compile(BLOCKS[block], f"{PAGE.name}:{block}", "exec"), names)  # noqa: S102 -- our own page


async def served_by(
    names: dict[str, Any], served: Served, *tasks: str, concurrency: int = 10
) -> Callable[[], Any]:
    key = await served.key(kind="wk")
    await eventually(lambda: _has(names, tasks))
    queues = ["default", "billing"]
    return lambda: working(names["app"], http(served, key), queues=queues, concurrency=concurrency)


async def _has(names: dict[str, Any], tasks: tuple[str, ...]) -> bool:
    return all(task in names for task in tasks)


def test_every_example_is_here() -> None:
    assert set(BLOCKS) == {
        *("typed", "schedule", "later", "charge", "export", "daily", "rebuild", "http"),
    }


async def test_a_typed_task(
    served: Served, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, app: App,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    sent: list[tuple[Any, str]] = []

    class Mailer:
        async def send(self, invoice: Any, *, idempotency_key: str) -> str:
            sent.append((invoice, idempotency_key))
            return f"mail-{invoice.customer_id}"

    monkeypatch.setenv("BETIMES_URL", str(app.url))
    monkeypatch.setenv("BETIMES_API_KEY", str(app.api_key))
    del names["app"]
    names["mailer"] = Mailer()
    page = asyncio.create_task(asyncio.to_thread(execute, "typed", names))
    async with (await served_by(names, served, "app", "run"))():
        await page
    ((invoice, key),) = sent
    assert (invoice.customer_id, invoice.amount, key) == (7, "12.50", names["run"].id)
    assert capsys.readouterr().out == f"{names['run'].id} mail-7\n"
    names["app"].close()


async def test_a_schedule(served: Served, names: dict[str, Any], app: App) -> None:
    reports: list[Any] = []
    names["build_report"] = lambda *, for_day: reports.append(for_day)
    await asyncio.to_thread(execute, "schedule", names)
    (job,) = [job async for job in app.async_client.jobs.list()]
    assert (job.name, job.schedule["jitter"], job.schedule["overlap"]) == (
        "nightly_report",
        "PT5M",
        "skip",
    )
    made = await app.async_client.jobs.run("nightly_report")
    async with (await served_by(names, served, "nightly_report"))():
        await eventually(lambda: _ended(app, made.id))
    assert len(reports) == 1


async def _ended(app: App, run: str) -> Any:
    found = await app.async_client.runs.get(run)
    return found if found.state in {"succeeded", "dead", "cancelled"} else None


async def test_later_once_and_urgent(names: dict[str, Any], app: App) -> None:
    @app.task
    def remind(user_id: int) -> None:
        """A reminder."""

    names |= {"remind": remind, "user": SimpleNamespace(id=7)}
    await asyncio.to_thread(execute, "later", names)
    listed = app.async_client.runs.list(
        due_after="2026-01-01T00:00:00Z", due_before="2030-01-01T00:00:00Z"
    )
    runs = [run async for run in listed]
    assert sorted((run.state, run.priority) for run in runs) == [("cancelled", 9), ("scheduled", 5)]
    assert "2026-12-24T14:00:00" in next(run.due_at for run in runs if run.state == "scheduled")


@dataclass
class Answer:
    status: int
    retry_after: float = 0.01


async def test_failing_and_effects_that_happen_once(
    served: Served, names: dict[str, Any], app: App, tmp_path: Path
) -> None:
    charged: list[str] = []
    told: list[DeadRun] = []
    busy = {"p-busy": 1}

    class Gateway:
        def charge(self, payment: str, *, idempotency_key: str) -> Answer:
            if payment == "p-poor":
                return Answer(402)
            if busy.pop(payment, 0):
                return Answer(429)
            charged.append(payment)
            return Answer(200)

    db = sqlite3.connect(tmp_path / "own.db", check_same_thread=False)
    db.execute(SCHEMA)
    db.commit()
    names |= {"alert_team": told.append, "gateway": Gateway(), "db": db}
    source = BLOCKS["charge"].replace('"initial": "5s"', '"initial": "10ms"')
    exec(compile(source, PAGE.name, "exec"), names)  # noqa: S102 -- our own page, less patient
    charge = names["charge"]
    runs = [await charge.aenqueue(one) for one in ("p-1", "p-1", "p-busy", "p-poor")]
    # One at a time: they share a connection, as threads of a real worker would not.
    async with (await served_by(names, served, "charge", concurrency=1))():
        ended = [await run.awaited(timeout=30) for run in runs]

        async def heard() -> bool:
            return bool(told)

        await eventually(heard)
    db.close()
    assert [one.state for one in ended] == ["succeeded", "succeeded", "succeeded", "dead"]
    assert sorted(charged) == ["p-1", "p-busy"]
    assert [one.run_id for one in told] == [runs[3].id]


async def test_long_work(served: Served, names: dict[str, Any], app: App) -> None:
    written: list[int] = []

    def rows(year: int, start: int) -> Any:
        for number in range(start + 1, 3001):
            if number == 1500 and not names.get("crashed"):
                names["crashed"] = True
                raise RuntimeError("power cut")
            yield SimpleNamespace(n=number)

    def write(row: Any, fence: int) -> None:
        written.append(row.n)

    names |= {"rows": rows, "write": write, "total": 3000}
    await asyncio.to_thread(execute, "export", names)
    export = names["export"]
    retry = {"max_attempts": 3, "initial": 0, "jitter": "none"}
    run = await export.configure(retry=retry).aenqueue(2026)
    async with (await served_by(names, served, "export"))():
        ended = await run.awaited(timeout=30)
    assert ended.state == "succeeded"
    assert ended.run.progress == {"percent": 100, "message": "row 3000"}
    # The second attempt began after the checkpoint of the first, not at the beginning.
    assert written == [*range(1, 1500), *range(1001, 3001)]


class Reports:
    """Stand-ins for the tasks of the workflows."""

    def __init__(self, app: App) -> None:
        self.published: list[int] = []
        self.cleaned = 0

        @app.task
        def list_files() -> list[str]:
            return ["a.csv", "bb.csv", "ccc.csv"]

        @app.task(retry={"max_attempts": 1})
        def parse(file: str, strict: bool = False) -> int:
            if strict and file == "!":
                raise ValueError("no file")
            return len(file)

        @app.task
        async def merge(parts: list[int]) -> int:
            return sum(parts)

        @app.task
        def publish(total: int) -> None:
            self.published.append(total)

        @app.task
        def cleanup() -> None:
            self.cleaned += 1

        self.tasks = {task.name: task for task in (list_files, parse, merge, publish, cleanup)}


async def test_a_graph_of_tasks(served: Served, names: dict[str, Any], app: App) -> None:
    reports = Reports(app)
    names |= reports.tasks
    execute("daily", names)
    applied = await asyncio.to_thread(app.sync_schedules)
    assert applied.created == ["daily"]
    job = await app.async_client.jobs.get("daily")
    assert job.target is not None
    assert (job.target["type"], job.target["workflow"]) == ("workflow", "daily")
    again = await asyncio.to_thread(app.sync_schedules, prune=True)
    assert (again.unchanged, again.updated) == (["daily"], [])
    async with advancing(served), (await served_by(names, served, "daily"))():
        run = await names["daily"].astart()
        assert run.version == 1, "what was brought twice has one version"

        async def waits() -> bool:
            return [node.state for node in (await _graph(run)).nodes if node.gate] == ["ready"]

        await eventually(waits)
        assert not reports.published
        await run.aapprove("publish")
        ended = (await run.awaited(timeout=30)).check()
    assert (reports.published, reports.cleaned) == ([5 + 6 + 7], 1)
    assert {name: node.state for name, node in ended.nodes.items()} == dict.fromkeys(
        ("list_files", "parse", "merge", "publish", "cleanup"), "succeeded"
    )
    assert ended.nodes["parse"].items is not None
    assert ended.nodes["parse"].items.succeeded == 3
    del app._workflows["daily"]
    gone = await asyncio.to_thread(app.sync_schedules, prune=True)
    assert gone.deleted == ["daily"]


async def _graph(run: Any) -> Any:
    return (await run.afetch()).graph


async def test_a_graph_with_an_input(served: Served, names: dict[str, Any], app: App) -> None:
    @dataclass
    class Day:
        name: str
        files: list[str]

    reports = Reports(app)
    names |= {**reports.tasks, "Day": Day, "WorkflowBuilder": WorkflowBuilder}
    async with advancing(served), (await served_by(names, served, "app"))():
        await asyncio.to_thread(execute, "rebuild", names)
        assert names["run"].fetch is not None
        # An input that nobody could take is refused by the service as well.
        with pytest.raises(errors.InvalidPayload, match="does not fit the workflow 'rebuild'"):
            await app.async_client.workflows.start("rebuild", input={"name": 1})
        failed = await names["rebuild"].astart(Day("tuesday", ["!"]))
        ended = await failed.awaited(timeout=30)
    with pytest.raises(WorkflowRunFailed, match="the node 'parse' failed"):
        ended.check()
    assert ended.nodes["merge"].state == "cancelled"


class Flask:
    """A stand-in for the receiver's framework: it keeps what is to be called for a path."""

    def __init__(self) -> None:
        self.views: dict[str, Callable[[], Any]] = {}

    def post(self, path: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def keep(view: Callable[[], Any]) -> Callable[[], Any]:
            self.views[path] = view
            return view

        return keep


async def test_no_worker_at_all(served: Served, names: dict[str, Any], app: App) -> None:
    flask, page = Flask(), SimpleNamespace(headers={}, get_data=bytes)
    names |= {"flask_app": flask, "request": page}
    with pytest.raises(errors.InvalidParameter, match=r"got 'ops'; there are: none"):
        await asyncio.to_thread(execute, "http", names)
    ops = await app.async_client.endpoints.create(
        type="webhook", name="ops", url="https://example.com/hooks", event_types=["job.deleted"]
    )
    names["WHSEC"] = ops.secret
    await asyncio.to_thread(execute, "http", names)
    job = await app.async_client.jobs.get("ping-crm")
    assert job.notify == [{"endpoint": ops.id, "name": "ops", "on": ["run.dead"]}]
    async with a_target() as target, a_dispatcher(served.desk) as bench:
        async with served.desk.database.connection(Lane.ENGINE) as connection:
            await connection.execute("UPDATE betimes.endpoints SET address = $1", target.url())
        await an_event(served.desk, "run.cancelled", {"job_id": job.id})
        await an_event(served.desk, "run.dead", {"job_id": job.id})
        await bench.turn()
        (hook,) = target.received
    page.headers, page.get_data = hook.headers, lambda: hook.body
    assert flask.views["/hooks/betimes"]() == ("", 204)
    page.get_data = lambda: hook.body + b" "
    with pytest.raises(BadSignature):
        flask.views["/hooks/betimes"]()
    assert job.target is not None
    assert (job.target["url"], job.schedule["type"]) == ("https://crm.example/sync", "interval")
