"""Starting workflows in the Harness, and what their handles can do."""

from dataclasses import dataclass
from typing import Any

import pytest

from betimes import App, Unfit, WorkflowRunFailed
from betimes.sdk.errors import InvalidState, NotFound
from betimes.testing import Harness


@dataclass
class Day:
    name: str
    files: list[str]


app = App(name="test")
seen: list[Any] = []


@app.task(retry={"max_attempts": 1})
def see(what: Any) -> Any:
    seen.append(what)
    return what


@app.workflow(tags={"team": "night"})
def of_a_day(w: Any, day: Day) -> None:
    parts = w.map(see, over=day.files)
    done = w.run(see, {"day": day.name, "parts": parts}, id="done")
    w.run(see, "approved", needs=[done], gate="approval", id="publish")


@app.workflow(failure_policy="continue")
def plain(w: Any) -> None:
    told = w.run(see, w.signal, gate="signal", id="told")
    last = w.run(see, ["last", told], id="last")
    w.run(see, "cleaned", needs=[last], when="all_done", id="clean")


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


def test_an_input_goes_through_the_graph_and_the_end_is_waited_for() -> None:
    with Harness(app) as h:
        run = of_a_day.start(Day("monday", ["a", "b"]))
        with pytest.raises(TimeoutError, match=r"still running \(waits at publish\) after 60 s"):
            run.wait()
        run.approve("publish")
        ended = run.wait(timeout=5).check()
        assert (ended.state, ended.id, ended.succeeded) == ("succeeded", run.id, True)
        assert ended.nodes["see"].items is not None
        assert ended.nodes["see"].items.succeeded == 2
        assert run.output("done") == {"day": "monday", "parts": ["a", "b"]}
        with pytest.raises(LookupError, match="'see' has one for each element"):
            run.output("see")
        with pytest.raises(LookupError, match="a node of 'of_a_day', got 'nobody'"):
            run.output("nobody")
        shown = [app.client.runs.get(one.id) for one in h.runs()]
        assert {one.workflow_run_id for one in shown} == {run.id}
        assert [one.node for one in shown] == ["see[0]", "see[1]", "done", "publish"]
        assert run.graph().critical_path == ["see", "done", "publish"]
        (known,) = h.workflow_runs(of_a_day)
    assert (known.id, known.tags, known.input["name"]) == (run.id, {"team": "night"}, "monday")
    assert seen == ["a", "b", {"day": "monday", "parts": ["a", "b"]}, "approved"]
    assert repr(run) == f"WorkflowHandle({run.id!r}, workflow='of_a_day')"


async def test_the_same_in_an_async_test() -> None:
    async with Harness(app):
        run = await of_a_day.astart(Day("monday", []))
        with pytest.raises(TimeoutError):
            await run.awaited(timeout=1)
        with pytest.raises(LookupError, match="'publish' to have succeeded, it is ready"):
            await run.aoutput("publish")
        await run.aapprove("publish")
        assert (await run.awaited()).succeeded
        assert await run.aoutput("publish") == "approved"
        other = await plain.astart()
        await other.acancel("no longer wanted")
        assert (await other.awaited()).state == "cancelled"
        third = await plain.astart()
        with pytest.raises(TimeoutError):
            await third.awaited(timeout=0.1)
        await third.asignal("told", Day("tuesday", []))
        assert (await third.awaited()).succeeded
    assert {"name": "tuesday", "files": []} in seen


def test_a_signal_brings_something_and_a_node_is_left_out() -> None:
    with Harness(app) as h:
        run = plain.start()
        h.run_until_idle()
        run.signal("told", {"by": "me"})
        run.skip("last", "not today")
        assert run.wait().succeeded
        assert h.workflow_runs(plain)[0].states == {
            "told": "succeeded", "last": "skipped", "clean": "succeeded",
        }  # fmt: skip
    assert seen == [{"by": "me"}, "cleaned"]


def test_cancelling_cleans_up_unless_told_otherwise() -> None:
    with Harness(app) as h:
        run, gone = plain.start(), plain.start()
        h.run_until_idle()
        run.cancel("enough")
        gone.cancel(cleanup=False)
        assert (run.wait().state, gone.wait().state) == ("cancelled", "cancelled")
        first, second = h.workflow_runs(plain)
        run.cancel("again means nothing")
        with pytest.raises(WorkflowRunFailed, match=r"'plain' to succeed, it was cancelled"):
            run.wait().check()
    assert (first.states["clean"], second.states["clean"]) == ("succeeded", "cancelled")
    assert seen == ["cleaned"]


def test_what_failed_is_done_again() -> None:
    with Harness(app) as h:
        run = of_a_day.start(Day("monday", ["a"]))
        with h.failing(see, times=1):
            ended = run.wait()
        with pytest.raises(WorkflowRunFailed, match=r"has failed: the node 'see' failed"):
            ended.check()
        run.retry()
        h.run_until_idle()
        assert h.workflow_runs()[0].waiting_for == ["publish"]
        with pytest.raises(InvalidState, match="is running"):
            run.retry()
        run.approve("publish")
        assert run.wait().succeeded
        with pytest.raises(InvalidState, match="nothing of"):
            run.retry()
        run.retry("done")
        h.run_until_idle()
        assert seen.count("a") == 1, "what comes before it is kept"
        run.approve("publish")
        assert run.wait().succeeded
        run.retry(everything=True)
        h.run_until_idle()
        assert seen.count("a") == 2


def test_a_workflow_brings_its_limits_to_every_try() -> None:
    own = App(name="own")

    @own.task
    def slow() -> None: ...

    @own.workflow(timeout="1h")
    def flow(w: Any) -> None:
        w.run(slow, gate="approval")

    with Harness(own) as h:
        run = flow.start()
        h.advance("61m")
        assert h.workflow_runs(flow)[0].state == "failed"
        run.retry()
        h.advance("59m")
        assert h.workflow_runs(flow)[0].state == "running"
        h.advance("2m")
        assert h.workflow_runs(flow).failed == 1


def test_what_is_wrong_is_refused_as_the_service_would() -> None:
    with Harness(app) as h:
        run = plain.start()
        with pytest.raises(InvalidState, match="waits at its gate, 'told' is waiting"):
            run.signal("told")
        h.run_until_idle()
        with pytest.raises(NotFound, match="'nobody'"):
            run.approve("nobody")
        with pytest.raises(NotFound, match="no workflow run 'wfr_1'"):
            app.client.workflow_runs.get("wfr_1")
        with pytest.raises(Unfit):
            of_a_day.start({"name": 7})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="too many"):
            plain.start(1)  # type: ignore[call-arg]
        run.signal("told")
        h.run_until_idle()
        with pytest.raises(InvalidState, match="has not started, 'last' is succeeded"):
            run.skip("last")
        with pytest.raises(InvalidState, match="goes on"):
            run.cancel()
        assert app.sync_schedules().unchanged == []
        assert plain.put() == 1


def test_an_app_that_includes_another_brings_its_workflows_to_its_own_service() -> None:
    other = App(name="other")

    @other.workflow(schedule="every day at 06:00", description="All of it.")
    def nightly(w: Any, part: int = 3) -> None:
        w.run(see, part)

    whole = App("http://127.0.0.1:1", "key", name="whole")
    whole.include(app)
    whole.include(other)
    with Harness(whole, now="2026-03-27T05:59Z") as h:
        assert whole.sync_schedules(prune=True).unchanged == ["nightly"]
        h.advance("1 minute")
        assert h.workflow_runs(nightly)[0].outputs == {"see": 3}
    assert seen == [3]
