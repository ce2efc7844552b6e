"""Who waits for work is woken when it can be had: at once, or at the time that was announced."""

import asyncio
from uuid import UUID

import pytest

from betimes.api.waiters import AHEAD_MS_MAX, Waiters
from betimes.domain.ids import TenantId, to_ms
from betimes.testing import ManualClock

TENANT = TenantId(UUID(int=7))


class Timers:
    """The timers of a loop, kept instead of waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: list[tuple[float, tuple[object, ...]]] = []
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", self._later)

    def _later(self, seconds: float, act: object, *arguments: object) -> None:
        self.kept.append((seconds, (act, *arguments)))

    def fire(self) -> None:
        """The first of them is over."""
        _, (act, *arguments) = self.kept.pop(0)
        assert callable(act)
        act(*arguments)


@pytest.fixture
def waiters() -> Waiters:
    return Waiters(ManualClock())


def line(queue: str, *times: int) -> str:
    return f"3/2:{queue}:{TENANT}:{','.join(map(str, times))}"


async def test_what_is_there_wakes_at_once(waiters: Waiters) -> None:
    now = to_ms(ManualClock().now())
    mine = waiters.enter(["a:b", "c"], TENANT)
    others = waiters.enter(["d"], TENANT)
    waiters.heard(f"no hint\n{line('a:b', now)}")
    assert mine.is_set()
    assert not others.is_set()


async def test_what_is_announced_wakes_at_its_times(
    waiters: Waiters, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    now = to_ms(ManualClock().now())
    waiters.heard(line("a", now + 50, 450))
    assert [seconds for seconds, _ in timers.kept] == [0.05, 0.5]
    for _ in range(2):
        woken = waiters.enter(["a"], TENANT)
        assert not woken.is_set()
        timers.fire()
        assert woken.is_set()
        waiters.leave(["a"], TENANT, woken)


async def test_what_is_far_away_keeps_no_timer(
    waiters: Waiters, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = Timers(monkeypatch)
    waiters.heard(line("a", to_ms(ManualClock().now()) + AHEAD_MS_MAX + 1))
    assert timers.kept == []
