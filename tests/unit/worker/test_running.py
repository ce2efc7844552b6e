"""Alarms of attempts that wait: set, silenced, cleaned up."""

import asyncio
from datetime import timedelta
from typing import Any, cast

from betimes.domain.ids import RunId
from betimes.domain.leased import WantedRun
from betimes.domain.spec import RunSpec
from betimes.testing import ManualClock
from betimes.worker.context import Context
from betimes.worker.handlers import Call
from betimes.worker.plan import Plan
from betimes.worker.running import SILENT_MAX, Running, Runnings, Stop

ANY = cast("Any", None)


def a_running(clock: ManualClock, number: int, timeout: float) -> Running:
    spec = RunSpec(handler="x", payload=None, timeout=timedelta(seconds=timeout))
    plan = Plan(spec=spec, handler="x", call=cast("Call", None), start_deadline=None, plain=True)
    run = WantedRun(cast("RunId", number), *[ANY] * 11)
    return Running(run, ANY, plan, Context(run, ANY, spec, clock.now(), clock.now))


async def test_limits_go_off_in_order_and_only_for_those_who_still_run() -> None:
    clock = ManualClock()
    stopped: list[Running] = []
    runnings = Runnings(clock=clock, give_up=stopped.append)
    late, soon, done = (a_running(clock, n, s) for n, s in ((1, 9.0), (2, 3.0), (3, 4.0)))
    for running in (late, soon, done):
        running.carrier = cast("Any", asyncio.ensure_future(asyncio.sleep(0)))  # noqa: TID251
        runnings.add(running)
    runnings.remove(done)
    clock.advance(5)
    assert runnings.tick() == 1
    assert (soon.stop, late.stop, done.stop) == (Stop.TIMEOUT, None, None)
    assert soon.context.cancelled
    runnings.stop(late, Stop.LOST)
    runnings.stop(late, Stop.CANCEL)
    assert late.stop is Stop.LOST


async def test_alarms_of_attempts_that_ended_are_not_kept() -> None:
    """Many short runs with a long limit must not fill the memory until the limit has passed."""
    clock = ManualClock()
    runnings = Runnings(clock=clock, give_up=lambda _: None)
    for number in range(5 * SILENT_MAX):
        running = a_running(clock, number, 3600.0)
        runnings.add(running)
        runnings.remove(running)
    assert len(runnings._alarms) <= SILENT_MAX + 1
