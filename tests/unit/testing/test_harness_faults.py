"""What goes wrong in a Harness: workers that die, runs that overlap, services that are away."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from betimes import App, Context
from betimes.testing import Harness


def an_app() -> App:
    return App(name="test")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_dies_and_nothing_is_lost(when: Any) -> None:
    app = an_app()
    done: list[int] = []

    @app.task
    def work(ctx: Context) -> None:
        done.append(ctx.fence)

    with Harness(app) as h:
        work.enqueue()
        h.crash_worker(when=when)
        assert done == ([] if when == "before" else [1])
        with pytest.raises(AssertionError, match="did not"):
            h.assert_no_lost_runs()
        h.expire_leases()
        h.assert_no_lost_runs()
        (run,) = h.runs()
        assert (run.state, run.attempt, run.fence) == ("succeeded", 2, 2)
    assert done == ([2] if when == "before" else [1, 2])


def test_poison_ends_among_the_dead() -> None:
    app = an_app()
    told: list[Any] = []

    @app.task(retry={"max_attempts": 2}, on_dead=told.append)
    def work() -> None: ...

    with Harness(app) as h, h.crashing(work):
        work.enqueue()
        h.run_until_idle()
        h.advance("29s")
        assert (h.runs()[0].state, h.runs()[0].attempt) == ("running", 1)
        h.advance("1s")
        assert (h.runs()[0].state, h.runs()[0].attempt) == ("running", 2)
        h.expire_leases()
        assert h.runs().dead == 1
    assert [(one.task, one.attempts) for one in told] == [("work", 2)]


@pytest.mark.parametrize(
    ("policy", "states"),
    [
        ("skip", ["succeeded", "skipped", "skipped"]),
        ("allow", ["succeeded", "succeeded", "succeeded"]),
        ("buffer_one", ["succeeded", "succeeded", "skipped"]),
        ("buffer_all", ["succeeded", "succeeded", "succeeded"]),
        ("cancel_running", ["cancelled", "cancelled", "succeeded"]),
    ],
)
def test_runs_that_take_too_long_overlap(policy: Any, states: list[str]) -> None:
    app = an_app()

    @app.task(schedule="0 * * * *", overlap=policy)
    def hourly() -> None:
        h.spend("150m")

    with Harness(app, now="2026-01-01T00:30Z") as h:
        h.advance("3h")
        h.advance("29m")
        assert len(h.fires(hourly)) == 3
        for run in h.runs():
            assert run.state in {*states, "running", "queued"}
        h.travel("2026-01-01T03:59Z")
        h._world.jobs["hourly"].paused = True
        h.advance("12h")
        assert [run.state for run in h.runs()][:3] == states


def test_time_limits_gates_and_deadlines() -> None:
    app = an_app()

    @app.task(timeout="1m", retry={"max_attempts": 1})
    def slow() -> None:
        h.spend("2m")

    @app.task(concurrency={"key": "one", "limit": 1}, start_deadline="5m")
    def gated(number: int) -> None:
        h.spend("4m")

    with Harness(app) as h:
        start = h.now
        slow.enqueue()
        h.run_until_idle()
        assert (h.runs(slow)[0].state, h.now - start) == ("dead", timedelta(minutes=1))
        for number in range(3):
            gated.enqueue(number)
        h.run_until_idle()
        states = [(run.state, run.reason) for run in h.runs(gated)]
        assert states == [
            ("succeeded", ""),
            ("succeeded", ""),
            ("expired", "START_DEADLINE_PASSED"),
        ]
        with pytest.raises(RuntimeError, match="inside a handler"):
            h.spend(1)


@pytest.mark.parametrize(
    ("catchup", "runs", "missed"),
    [
        ({"policy": "none"}, 0, 5),
        ({"policy": "latest", "window": "6h"}, 1, 4),
        ({"policy": "all", "window": "6h"}, 5, 0),
    ],
)
def test_an_outage_is_caught_up_with(catchup: Any, runs: int, missed: int) -> None:
    app = an_app()

    @app.task(schedule="0 * * * *", catchup=catchup)
    def hourly() -> None: ...

    with Harness(app, now="2026-01-01T00:30Z") as h:
        h.outage("5h")
        h.run_until_idle()
        assert h.runs(hourly).succeeded == runs
        assert sum(gap.count for gap in h.missed(hourly)) == missed
        h.advance("1h")
        assert h.runs(hourly).succeeded == runs + 1
        h.assert_no_lost_runs()


def test_a_job_that_fails_again_and_again_is_paused() -> None:
    app = an_app()

    @app.task(schedule="0 * * * *", pause_after_failures=2, retry={"max_attempts": 1})
    def hourly() -> None:
        raise ValueError

    with Harness(app) as h:
        h.advance("12h")
        assert (h.runs(hourly).dead, len(h.fires(hourly))) == (2, 2)


def test_fixed_delay_counts_from_the_end() -> None:
    app = an_app()

    @app.task(schedule={"type": "interval", "every": "1h", "mode": "fixed_delay"})
    def poll() -> None:
        h.spend("30m")

    with Harness(app, now="2026-01-01T00:00Z") as h:
        h.advance("4h")
        fires = h.fire_times(poll)
        assert {b - a for a, b in pairwise(fires)} == {timedelta(minutes=90)}
