"""What tasks say, on its way to the service."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

from betimes.domain.errors import Unavailable
from betimes.runtime.courier import Courier
from betimes.runtime.saying import Saying
from betimes.testing import ManualClock
from betimes.wire.workers import LogLine, Progress


class Service:
    """Hears everything."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.away = False

    async def progress(self, _: Any, told: Progress) -> None:
        self.heard.append(str(told.percent))

    async def checkpoint(self, _: Any, data: bytes) -> None:
        self.heard.append(data.decode())

    async def log(self, _: Any, lines: Sequence[LogLine]) -> None:
        if self.away:
            raise Unavailable("the service is away")
        self.heard += [line.message for line in lines]


def a_voice(courier: Courier, clock: ManualClock) -> Saying:
    return Saying("lease", now=clock.now, wake=courier.wake)


async def test_nothing_is_kept_for_attempts_whose_words_are_told(clock: ManualClock) -> None:
    """A thread that was given up may go on talking for hours, and nobody tells when it ends."""
    service = Service()
    courier = Courier(notes=service, clock=clock, loop=asyncio.get_running_loop())
    ended, lost = a_voice(courier, clock), a_voice(courier, clock)
    for saying in (ended, lost):
        saying.log("info", "in time", {})
    await courier.last_words(ended)
    for saying in (ended, lost):
        saying.log("info", "too late", {})
    await courier.tick()
    assert sorted(service.heard) == ["in time", "in time", "too late", "too late"]
    known = weakref.WeakSet([ended, lost])
    del ended, lost, saying
    gc.collect()
    assert not known


async def test_words_that_could_not_be_told_are_told_later_and_in_order(
    clock: ManualClock,
) -> None:
    service = Service()
    courier = Courier(notes=service, clock=clock, loop=asyncio.get_running_loop())
    saying = a_voice(courier, clock)
    service.away = True
    saying.log("info", "one", {})
    assert not await courier.tick()
    service.away = False
    saying.log("info", "two", {})
    await courier.last_words(saying)
    assert service.heard == ["one", "two"]
