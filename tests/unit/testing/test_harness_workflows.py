"""Workflows in the Harness: the rules of the service, a clock that jumps."""

from typing import Any

import pytest

from betimes import App, Context
from betimes.domain.errors import Conflict, Invalid
from betimes.testing import Harness

SIX = "every day at 06:00"
EARLY = "2026-03-27T05:59Z"


def an_app() -> App:
    return App(name="test")


def test_gates_wait_for_time_for_signals_and_for_people() -> None:
    app = an_app()
    seen: list[Any] = []

    @app.task
    def see(what: Any) -> None:
        seen.append(what)

    @app.workflow(schedule=SIX)
    def flow(w: Any) -> None:
        w.run(see, "timer", gate={"type": "timer", "delay": "2 days"}, id="timer")
        w.run(see, w.signal["who"], gate="signal", id="signal")
        w.run(see, "late", gate={"type": "approval", "timeout": "1h"}, id="late")
        w.run(see, "approval", gate="approval", id="approval")

    with Harness(app, now=EARLY, schedules=True) as h:
        h.advance("1 minute")
        (run,) = h.workflow_runs(flow)
        assert run.waiting_for == ["timer", "signal", "late", "approval"]
        h.signal(run, "signal", {"who": "me"})
        h.approve("flow", "approval")
        assert not seen, "time stands still"
        h.advance("59 minutes")
        assert sorted(seen) == ["approval", "me"]
        assert run.nodes["late"].state == "ready"
        h.advance("1 minute")
    assert run.states == {
        "timer": "cancelled", "signal": "succeeded", "late": "failed", "approval": "succeeded",
    }  # fmt: skip
    assert (run.state, run.nodes["late"].error) == ("failed", "its gate was not opened in time")


def test_idle_is_what_waits_for_somebody_and_not_for_time() -> None:
    app = an_app()

    @app.task
    def nothing() -> None: ...

    @app.workflow(schedule="2026-03-27T06:00Z", timeout="30 days")
    def flow(w: Any) -> None:
        first = w.run(nothing, gate={"type": "timer", "delay": "2 days"})
        w.run(nothing, needs=[first], gate={"type": "approval", "timeout": "7 days"}, id="last")

    with Harness(app, now=EARLY) as h:
        h.advance("1 minute")
        h.run_until_idle()
        (run,) = h.workflow_runs()
        assert (run.waiting_for, str(h.now)) == (["last"], "2026-03-29 06:00:00+00:00")


def test_a_mapped_node_does_so_many_at_once_and_keeps_their_order() -> None:
    app = an_app()
    begun: list[int] = []

    @app.task
    def numbers() -> list[int]:
        return [3, 1, 2, 5]

    @app.task
    def work(number: int, by: int) -> int:
        begun.append(number)
        h.spend(f"{number}m")
        return number * by

    @app.task
    def total(parts: list[int]) -> int:
        return sum(parts)

    @app.workflow(schedule=SIX)
    def flow(w: Any) -> None:
        w.run(total, w.map(work, over=w.run(numbers), max_parallel=2, by=10))

    with Harness(app, now=EARLY) as h:
        h.advance("1 minute")
        (run,) = h.workflow_runs("flow")
        assert (begun, run.nodes["work"].runs.count("running")) == ([3, 1], 2)
        h.advance("1 minute")
        assert begun == [3, 1, 2]
        h.advance("1 hour")
        assert run.outputs == {"numbers": [3, 1, 2, 5], "work": [30, 10, 20, 50], "total": 110}
        assert [one.place.item for one in h.runs(work) if one.place] == [0, 1, 2, 3]
        h.assert_not_enqueued(work)


@pytest.mark.parametrize(("policy", "done"), [("fail_fast", 2), ("continue", 4)])
def test_one_element_fails(policy: Any, done: int) -> None:
    app = an_app()

    @app.task(retry={"max_attempts": 1})
    def work(number: int) -> int:
        return 10 // number

    @app.task
    def others(ctx: Context) -> str:
        return ctx.run_id

    @app.task
    def mend(parts: Any) -> str:
        return f"mended {parts}"

    @app.workflow(schedule=SIX, failure_policy=policy)
    def flow(w: Any) -> None:
        parts = w.map(work, over=[1, 0, 2, 5], max_parallel=1)
        w.run(others, needs=[parts])
        w.run(mend, parts, when="any_failed")

    with Harness(app, now=EARLY) as h:
        h.advance("1 minute")
        (run,) = h.workflow_runs("flow")
        assert len(h.runs(work)) == done
    assert run.nodes["work"].state == "failed"
    assert run.nodes["mend"].output == "mended None", "what failed has no output"
    other = "cancelled" if policy == "fail_fast" else "skipped"
    assert (run.nodes["others"].state, run.state) == (
        other,
        "failed" if policy == "fail_fast" else "succeeded",
    )


def test_nothing_to_map_over_is_nothing_and_what_is_no_list_fails() -> None:
    app = an_app()

    @app.task
    def give(what: Any) -> Any:
        return what

    @app.workflow(schedule=SIX, failure_policy="continue")
    def flow(w: Any) -> None:
        w.map(give, over=[], id="none")
        w.map(give, over=w.run(give, 7), id="no_list")
        w.run(give, w.run(give, {"a": 1}, id="a")["b"], id="no_part")
        w.map(give, over=[{"a": 1}, {}], what=w.item["a"], id="no_element")

    with Harness(app, now=EARLY) as h:
        h.advance("1 minute")
        (run,) = h.workflow_runs("flow")
    assert (run.nodes["none"].state, run.outputs["none"]) == ("succeeded", [])
    assert run.nodes["no_list"].error == "expected a list to map over, got int"
    assert "'/b' in the output of 'a'" in run.nodes["no_part"].error
    assert (run.nodes["no_element"].state, len(run.nodes["no_element"].runs)) == ("failed", 0)
    assert "'/a' in the item" in run.nodes["no_element"].error
    assert run.state == "failed"


def test_a_run_that_takes_too_long_is_stopped_and_cleaned_up_after() -> None:
    app = an_app()
    seen: list[str] = []

    @app.task
    def slow(ctx: Context) -> None:
        h.spend("2h")

    @app.task
    def clean() -> None:
        seen.append("cleaned")

    @app.workflow(schedule=SIX, timeout="90m")
    def flow(w: Any) -> None:
        w.run(clean, needs=[w.run(slow, needs=[w.run(slow)])], when="all_done")

    with Harness(app, now=EARLY) as h:
        h.advance("4 hours")
        (run,) = h.workflow_runs("flow")
    assert (run.state, seen) == ("failed", ["cleaned"])
    # The first one was asked to stop and succeeded all the same; the second one never began.
    assert run.states == {"slow": "succeeded", "slow_2": "cancelled", "clean": "succeeded"}


def test_fires_of_a_workflow_overlap_like_those_of_any_job() -> None:
    app = an_app()

    @app.task
    def slow() -> None:
        h.spend("25m")

    @app.workflow(schedule="*/10 * * * *", overlap="skip")
    def skipping(w: Any) -> None:
        w.run(slow)

    @app.workflow(schedule="*/10 * * * *", overlap="replace")
    def replacing(w: Any) -> None:
        w.run(slow, needs=[w.run(slow)])

    with Harness(app, now="2026-03-27T05:55Z") as h:
        h.advance("1 hour")
        assert [str(run.fire_at)[11:16] for run in h.workflow_runs(skipping)] == ["06:00", "06:30"]
        replaced = h.workflow_runs(replacing)
        # Those under way are told, and end when they end: after 25 minutes.
        assert (replaced.cancelled, replaced.running, len(replaced)) == (4, 2, 6)
        assert len(h.fires(skipping)) == len(h.fires("replacing")) == 6


def test_a_dead_worker_loses_no_node() -> None:
    app = an_app()

    @app.task
    def give(number: int) -> int:
        return number

    @app.workflow(schedule=SIX)
    def flow(w: Any) -> None:
        w.run(give, w.map(give, over=[1, 2])[1], id="last")

    with Harness(app, now=EARLY) as h, h.crashing(give, times=2):
        h.advance("1 minute")
        assert h.workflow_runs().running == 1
        h.expire_leases()
        assert h.workflow_runs()[0].outputs["last"] == 2
        h.assert_no_lost_runs()


async def test_async_tests_run_async_nodes() -> None:
    app = an_app()

    @app.task
    async def give(number: int) -> int:
        return number

    @app.workflow(schedule=SIX)
    def flow(w: Any) -> None:
        w.map(give, over=[1, 2])

    async with Harness(app, now=EARLY) as h:
        await h.aadvance("1 minute")
        assert h.workflow_runs("flow").succeeded == 1


def test_who_is_meant_must_be_clear() -> None:
    app, other = an_app(), an_app()

    @other.task
    def elsewhere() -> None: ...

    @app.task
    def here() -> None: ...

    @app.workflow(schedule=SIX, overlap="allow")
    def flow(w: Any) -> None:
        w.run(here, gate="approval")
        w.run(here)

    @app.workflow(schedule=SIX)
    def broken(w: Any) -> None:
        w.run(elsewhere)

    with Harness(app, now=EARLY) as h, pytest.raises(Invalid, match="'broken', got 'elsewhere'"):
        h.advance("1 minute")
    del app._workflows["broken"]
    with Harness(app, now=EARLY) as h:
        with pytest.raises(KeyError, match="no workflow 'flaw' here, only flow"):
            h.workflow_runs("flaw")
        with pytest.raises(LookupError, match="one run of 'flow' that waits at 'here', got 0"):
            h.approve("flow", "here")
        h.advance("25 hours")
        with pytest.raises(LookupError, match="that waits at 'here', got 2"):
            h.approve(flow, "here")
        first, second = h.workflow_runs(flow)
        h.approve(first.id, "here")
        with pytest.raises(Conflict, match="a node with a gate of type signal"):
            h.signal(second, "here")
        with pytest.raises(Conflict, match="a gate of type approval, got 'here_2'"):
            h.approve(second, "here_2")
        with pytest.raises(Invalid, match="a node out of here, here_2, got 'there'"):
            h.approve(second, "there")
        h.run_until_idle()
        with pytest.raises(Conflict, match="waits at its gate, 'here' is succeeded"):
            h.approve(first, "here")
        assert [run.state for run in h.workflow_runs()] == ["succeeded", "running"]
        assert "'here': 'ready'" in repr(h.workflow_runs()[1:])
