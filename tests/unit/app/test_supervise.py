"""Roles are kept alive, crash apart, and are let go in two degrees; time is moved by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from betimes.app.roles import RoleEntry
from betimes.app.supervise import Ending, Supervisor
from betimes.config import ServerSettings
from betimes.domain.errors import Unavailable
from betimes.rhythm import Stopping
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock, Signal

SECOND = timedelta(seconds=1)
SETTINGS = ServerSettings(
    drain_timeout=10 * SECOND, restart_delay=SECOND, restart_delay_max=8 * SECOND,
    recovered_after=60 * SECOND, unhealthy_after_crashes=3,
)  # fmt: skip


@dataclass
class Puppet:
    """A role that does what the test says; a new one is made for every life."""

    fate: Signal[BaseException | None] = field(default_factory=Signal)
    lives: Signal[int] = field(default_factory=Signal)
    count: int = 0
    heeds_stopping: bool = True
    cancelled: bool = False

    def make(self) -> "Puppet":
        self.count += 1
        return self

    async def run(self, stopping: Stopping) -> None:
        self.lives.send(self.count)
        try:
            error = await self._end(stopping)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if error is not None:
            raise error

    async def _end(self, stopping: Stopping) -> BaseException | None:
        if not self.heeds_stopping:
            return await self.fate.wait()
        end = asyncio.Event()
        fate: list[BaseException | None] = []

        async def hear_fate() -> None:
            fate.append(await self.fate.wait())
            end.set()

        async def hear_stopping() -> None:
            await stopping.wait()
            end.set()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(hear_fate()), group.create_task(hear_stopping())]
            await end.wait()
            for task in tasks:
                task.cancel()
        return fate[0] if fate else None


@dataclass
class Stage:
    """A supervisor and all that a test turns around it."""

    clock: ManualClock
    stopping: Stopping
    recorder: Recorder
    telemetry: Telemetry
    supervisor: Supervisor
    running: asyncio.Task[Ending]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Pass the turn until something is so."""
        for _ in range(10_000):
            if condition():
                return
            await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, waits for no time
        pytest.fail("it never came to be")

    async def sleeping(self, count: int) -> None:
        await self.until(lambda: self.clock.sleepers == count)


@asynccontextmanager
async def staged(*, roll: float = 1.0, **puppets: Puppet) -> AsyncIterator[Stage]:
    clock, stopping, recorder = ManualClock(), Stopping(), Recorder()
    telemetry = Telemetry(clock=clock, handlers=[recorder])
    supervisor = Supervisor(
        roles=[RoleEntry(name, puppet.make) for name, puppet in puppets.items()],
        settings=SETTINGS, clock=clock, telemetry=telemetry, roll=lambda: roll, node="n1",
    )  # fmt: skip
    async with asyncio.TaskGroup() as group:
        running = group.create_task(supervisor.run(stopping))
        yield Stage(clock, stopping, recorder, telemetry, supervisor, running)
        stopping.hasten("the test is over")


async def test_a_requested_stop_lets_every_role_finish() -> None:
    worker, janitor = Puppet(), Puppet()
    async with staged(worker=worker, janitor=janitor) as stage:
        await worker.lives.wait()
        await janitor.lives.wait()
        assert stage.telemetry.reading("betimes_role_up", role="worker") == 1
        stage.stopping.request("SIGTERM")
        assert await stage.running is Ending.DRAINED
    assert not worker.cancelled
    assert stage.recorder.named("node.stopping")[0].metadata == {"node": "n1", "reason": "SIGTERM"}
    assert {role.state for role in stage.supervisor.health.roles.values()} == {"stopped"}
    assert stage.telemetry.reading("betimes_role_up", role="worker") == 0


async def test_a_crashed_role_is_made_anew_after_a_growing_wait_and_others_do_not_notice() -> None:
    worker, janitor = Puppet(), Puppet()
    async with staged(worker=worker, janitor=janitor) as stage:
        await janitor.lives.wait()
        for life, wait in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 8.0)):
            assert await worker.lives.wait() == life
            worker.fate.send(Unavailable("the database is away"))
            await stage.until(lambda life=life: len(outages(stage)) == life)  # type: ignore[misc]
            await stage.sleeping(1)
            stage.clock.advance(wait - 0.001)
            assert worker.count == life
            stage.clock.advance(0.001)
        assert await worker.lives.wait() == 6
        assert janitor.count == 1
        assert stage.telemetry.reading("betimes_role_crashes_total", role="worker") == 5
        stage.stopping.request("enough")
        assert await stage.running is Ending.DRAINED


def outages(stage: Stage) -> list[str]:
    return [event.name for event in stage.recorder.events if event.name.startswith("outage")]


async def test_the_wait_is_spread_by_the_roll() -> None:
    worker = Puppet()
    async with staged(worker=worker, roll=0.25) as stage:
        await worker.lives.wait()
        worker.fate.send(Unavailable("x"))
        await stage.until(lambda: outages(stage) == ["outage.began"])
        await stage.sleeping(1)
        stage.clock.advance(0.25)
        assert await worker.lives.wait() == 2


async def test_an_outage_is_told_once_and_ends_when_the_role_is_trusted_again() -> None:
    worker = Puppet()
    async with staged(worker=worker) as stage:
        for crash in range(1, 4):
            await worker.lives.wait()
            assert stage.supervisor.health.healthy
            worker.fate.send(Unavailable("x"))
            await stage.until(lambda crash=crash: len(outages(stage)) == crash)  # type: ignore[misc]
            await stage.sleeping(1)
            stage.clock.advance(8)
        await worker.lives.wait()
        assert not stage.supervisor.health.healthy
        assert outages(stage) == ["outage.began", "outage.lasts", "outage.lasts"]
        assert [event.level for event in stage.recorder.named("role.run")] == ["debug"] * 3
        assert len(stage.recorder.named("node.unhealthy")) == 1

        await stage.sleeping(1)
        stage.clock.advance(60)
        await stage.until(lambda: outages(stage)[-1] == "outage.ended")
        assert stage.supervisor.health.healthy
        assert len(stage.recorder.named("node.healthy")) == 1


async def test_a_role_that_returns_unasked_has_crashed() -> None:
    worker = Puppet()
    async with staged(worker=worker) as stage:
        await worker.lives.wait()
        worker.fate.send(None)
        await stage.until(lambda: outages(stage) == ["outage.began"])
        error = stage.recorder.named("outage.began")[0].error
        assert str(error) == "role worker ended although nobody asked"


async def test_a_role_that_cancels_itself_does_not_vanish() -> None:
    worker = Puppet()
    async with staged(worker=worker) as stage:
        await worker.lives.wait()
        worker.fate.send(asyncio.CancelledError())
        await stage.until(lambda: outages(stage) == ["outage.began"])
        await stage.sleeping(1)
        stage.clock.advance(1)
        assert await worker.lives.wait() == 2


async def test_a_role_that_cannot_be_made_has_crashed() -> None:
    def make() -> Puppet:
        raise Unavailable("no database")

    puppet = Puppet()
    puppet.make = make  # type: ignore[method-assign]
    async with staged(worker=puppet) as stage:
        await stage.until(lambda: outages(stage) == ["outage.began"])
        assert stage.supervisor.health.roles["worker"].crashes == 1


async def test_whoever_overruns_the_drain_is_cancelled() -> None:
    worker, janitor = Puppet(heeds_stopping=False), Puppet()
    async with staged(worker=worker, janitor=janitor) as stage:
        await worker.lives.wait()
        stage.stopping.request("SIGTERM")
        await stage.sleeping(1)
        stage.clock.advance(9.9)
        await stage.until(lambda: stage.supervisor.health.roles["janitor"].state == "stopped")
        assert not stage.running.done()
        stage.clock.advance(0.1)
        assert await stage.running is Ending.OVERRUN
    assert worker.cancelled
    assert [event.metadata for event in stage.recorder.named("role.overrun")] == [
        {"role": "worker"}
    ]


async def test_hastening_cancels_at_once() -> None:
    worker = Puppet(heeds_stopping=False)
    async with staged(worker=worker) as stage:
        await worker.lives.wait()
        stage.stopping.request("SIGTERM")
        await stage.sleeping(1)
        stage.stopping.hasten("second SIGTERM")
        assert await stage.running is Ending.HASTENED
    assert worker.cancelled
    assert stage.clock.monotonic() == 0.0


async def test_stopping_does_not_wait_for_a_restart() -> None:
    worker = Puppet()
    async with staged(worker=worker) as stage:
        await worker.lives.wait()
        worker.fate.send(Unavailable("x"))
        await stage.until(lambda: outages(stage) == ["outage.began"])
        await stage.sleeping(1)
        stage.stopping.request("SIGTERM")
        assert await stage.running is Ending.DRAINED
    assert worker.count == 1


async def test_a_node_without_roles_still_waits_to_be_stopped() -> None:
    async with staged() as stage:
        stage.stopping.request("SIGTERM")
        assert await stage.running is Ending.DRAINED
