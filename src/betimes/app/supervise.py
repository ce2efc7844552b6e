"""Keeping roles alive, and letting them go.

Each role lives in a task of its own inside one TaskGroup. A role that crashes takes nobody down: it
is made anew after a random wait that doubles with every crash in a row. The first crash is told,
the following ones only count, until the role has run long enough to be trusted; a role that keeps
crashing makes the node unhealthy.

The end has two degrees (see `Stopping`). Requested: every role finishes what it holds, for at most
the drain timeout; whoever is left then is cancelled. Hastened: everyone is cancelled at once. No
signal and no real clock is needed for any of it, so tests drive it by hand.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum

from betimes.app.health import Health
from betimes.app.roles import RoleEntry
from betimes.config import ServerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Bug
from betimes.rhythm import Stopping, first_of, full_jitter
from betimes.rhythm.beat import Roll
from betimes.telemetry import Outage, Telemetry


class Ending(Enum):
    """How a node came to its end."""

    DRAINED = "drained"
    OVERRUN = "overrun"
    HASTENED = "hastened"


class Supervisor:
    """Runs roles until stopping is requested."""

    def __init__(
        self,
        *,
        roles: Sequence[RoleEntry],
        settings: ServerSettings,
        clock: Clock,
        telemetry: Telemetry,
        roll: Roll,
        node: str,
    ) -> None:
        self._roles = roles
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._roll = roll
        self._node = node
        self._up = telemetry.gauge("betimes_role_up")
        self._crashes = telemetry.counter("betimes_role_crashes_total")
        self.health = Health(
            [role.name for role in roles], unhealthy_after=settings.unhealthy_after_crashes
        )

    async def run(self, stopping: Stopping) -> Ending:
        """Keep every role alive; return when all have ended."""
        async with asyncio.TaskGroup() as group:
            keepers = {
                role.name: group.create_task(self._keep(role, stopping), name=f"role {role.name}")
                for role in self._roles
            }
            return await self._await_end(keepers, stopping)

    async def _await_end(
        self, keepers: dict[str, asyncio.Task[None]], stopping: Stopping
    ) -> Ending:
        await stopping.wait()
        self._telemetry.event("node.stopping", node=self._node, reason=stopping.reason)
        endings = (Ending.DRAINED, Ending.HASTENED, Ending.OVERRUN)
        place = await first_of(
            _all_done(keepers),
            stopping.wait_hastened(),
            self._clock.sleep(self._settings.drain_timeout.total_seconds()),
        )
        for name, keeper in keepers.items():
            if not keeper.done():
                self._telemetry.event("role.overrun", level="warning", role=name)
                keeper.cancel()
        return endings[place]

    async def _keep(self, role: RoleEntry, stopping: Stopping) -> None:
        outage = Outage(duty="role", telemetry=self._telemetry, role=role.name)
        start = 0
        try:
            while not stopping.requested:
                start += 1
                error = await self._play(role, stopping, outage, start=start)
                if error is not None:
                    self._crashed(role.name, error, outage)
                    await self._back_off(outage.failures, stopping)
        finally:
            self.health.stopped(role.name)

    async def _play(
        self, role: RoleEntry, stopping: Stopping, outage: Outage, *, start: int
    ) -> BaseException | None:
        """One life of a role: None when it ended as asked, else what it died of."""
        async with asyncio.TaskGroup() as group:
            trust = group.create_task(self._trust_later(role.name, outage))
            try:
                with self._telemetry.span("role.run", role=role.name, start=start) as span:
                    span.expect_errors()  # the outage tells them, once
                    self.health.started(role.name)
                    self._up.set(1, role=role.name)
                    await role.make().run(stopping)
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                return error  # the role's own doing: without this it would vanish without a word
            except Exception as error:  # noqa: BLE001 -- whatever it was, the others live on
                return error
            finally:
                trust.cancel()
                self._up.set(0, role=role.name)
        return None if stopping.requested else Bug(f"role {role.name} ended although nobody asked")

    async def _trust_later(self, name: str, outage: Outage) -> None:
        if outage.failures:
            await self._clock.sleep(self._settings.recovered_after.total_seconds())
            was_healthy = self.health.healthy
            self.health.recovered(name)
            outage.ended()
            if self.health.healthy and not was_healthy:
                self._telemetry.event("node.healthy", node=self._node)

    def _crashed(self, name: str, error: BaseException, outage: Outage) -> None:
        was_healthy = self.health.healthy
        self.health.crashed(name)
        self._crashes.add(role=name)
        outage.failed(error)
        if was_healthy and not self.health.healthy:
            self._telemetry.event("node.unhealthy", level="error", node=self._node, role=name)

    async def _back_off(self, crashes: int, stopping: Stopping) -> None:
        pause: timedelta = full_jitter(
            crashes,
            first=self._settings.restart_delay,
            most=self._settings.restart_delay_max,
            roll=self._roll(),
        )
        await first_of(stopping.wait(), self._clock.sleep(pause.total_seconds()))


async def _all_done(keepers: dict[str, asyncio.Task[None]]) -> None:
    if keepers:
        await asyncio.wait(keepers.values())


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
