"""How a worker over HTTP asks for work."""

import asyncio
from datetime import timedelta
from typing import Any, cast

from betimes.domain.errors import NotFound
from betimes.rhythm import Stopping
from betimes.runtime.line import Grants
from betimes.runtime.transport import LEASES_AT_ONCE, Enlisted, HttpTransport
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.wire.workers import PARCEL_RUNS_MAX
from betimes.worker.runner import Resources, Size
from worker_kit import half, settle_down

TTL = timedelta(seconds=30)


class Forgetful:
    """A service that forgets its first worker while it waits for work, and has none for others."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.registered = 1
        self.forget, self.answer = asyncio.Event(), asyncio.Event()

    async def lease(self, worker: str, _: Any) -> Grants:
        self.asked.append(worker)
        if worker == "worker 1":
            await self.forget.wait()
            raise NotFound("there is no such worker")
        await self.answer.wait()
        return Grants([], [], None)  # type: ignore[arg-type]  # nobody looks at the time

    async def beat(self, *_: Any) -> None:
        """Nothing."""

    async def register(self) -> Enlisted:
        self.registered += 1
        await settle_down()
        return Enlisted(worker=f"worker {self.registered}", lease_ttl=TTL)


def a_transport(service: Forgetful, clock: ManualClock, stopping: Stopping) -> HttpTransport:
    size = Size(
        slots=LEASES_AT_ONCE * PARCEL_RUNS_MAX,
        threads=1,
        processes=1,
        enough=1,
        lease_ttl=TTL,
        heartbeat_every=TTL / 3,
    )
    nothing = cast("Any", None)
    return HttpTransport(
        resources=Resources(size=size, clock=clock),
        line=cast("Any", service),
        open_line=nothing,
        register=service.register,
        enlisted=Enlisted(worker="worker 1", lease_ttl=TTL),
        planning=nothing,
        queues=["default"],
        tasks=[],
        roll=half,
        telemetry=Telemetry(clock=clock),
        stopping=stopping,
        died=nothing,
    )


async def test_a_worker_that_was_forgotten_registers_once(clock: ManualClock) -> None:
    """However many of its requests find out: each further name would stay behind in the list."""
    service, stopping = Forgetful(), Stopping()
    transport = a_transport(service, clock, stopping)
    async with asyncio.TaskGroup() as group:
        group.create_task(transport.lease_until(stopping))
        await settle_down()
        assert service.asked == ["worker 1"] * LEASES_AT_ONCE
        service.forget.set()
        await settle_down()
        await settle_down()
        assert service.asked[LEASES_AT_ONCE:] == ["worker 2"] * LEASES_AT_ONCE
        assert service.registered == 2
        stopping.request("the test is over")
        service.answer.set()
