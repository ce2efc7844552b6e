"""The coordinator of a node: its duties, over the same holdings."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Protocol, cast

from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.deadlines import DeadlineKeeper
from betimes.coordinator.elector import REST as ELECTOR_REST
from betimes.coordinator.elector import Elector
from betimes.coordinator.hint import Hint
from betimes.coordinator.holdings import Holdings
from betimes.coordinator.pace import Pace, PacePolicy
from betimes.coordinator.planner import Planner
from betimes.coordinator.publisher import Publisher
from betimes.coordinator.recovery import Recovery
from betimes.coordinator.referee import Referee
from betimes.coordinator.relived import Relived
from betimes.coordinator.renewal import Renewal
from betimes.coordinator.sweeper import Sweeper
from betimes.coordinator.zones import ZoneKeeper
from betimes.domain.clock import Clock
from betimes.domain.ids import NodeId
from betimes.rhythm import DatabaseTime, Stopping
from betimes.store import nodes
from betimes.store.catchup import Catching
from betimes.store.database import Database
from betimes.store.deadlines import Deadlines
from betimes.store.hints import BALANCE
from betimes.store.missed import Missing
from betimes.store.plan import Planning
from betimes.store.publish import Publishing
from betimes.store.referee import Refereeing
from betimes.store.shards import Shards
from betimes.store.sweep import Sweeping
from betimes.store.zones import Zones
from betimes.telemetry import Telemetry

ROLE = "coordinator"


class Duty(Protocol):
    """A loop of the coordinator: `run` keeps its rhythm, `tick` is one pass of it."""

    async def run(self, stopping: Stopping) -> None:
        """Go on until asked to stop."""
        ...

    async def tick(self) -> object:
        """One bounded pass."""
        ...


class Coordinator:
    """Owns shards, plans their fires and publishes their runs.

    The constructor is long because it is the wiring of the duties over the same holdings and holds
    no logic: each duty names what it is given. `duties` is the one list of them, in the order in
    which tests crank them; others that need no shards (`besides`) come after them.
    """

    def __init__(
        self,
        *,
        node: NodeId,
        database: Database,
        clock: Clock,
        telemetry: Telemetry,
        settings: CoordinatorSettings,
        database_settings: DatabaseSettings,
        tzdata: str,
        hint: Hint = lambda *_: None,
        wake: Callable[[str], None] = lambda _: None,
        hinted: bool = True,
        policy: PacePolicy | None = None,
        besides: Mapping[str, Duty] | None = None,
    ) -> None:
        self.node = node
        self._database = database
        self._alive_within = settings.lease_ttl
        time = DatabaseTime(clock=clock)
        holdings = Holdings(telemetry)
        shards = Shards(database, node)
        self.holdings = holdings
        self.pace = Pace(
            lease=settings.lease_ttl.total_seconds(),
            period=max(settings.plan_every, settings.publish_every).total_seconds(),
            policy=policy,
        )
        renewal = Renewal(
            shards=shards,
            holdings=holdings,
            pace=self.pace,
            time=time,
            clock=clock,
            settings=settings,
        )
        self.elector = Elector(
            shards=shards,
            holdings=holdings,
            living=self._living,
            note_capacity=self._note_capacity,
            pace=self.pace,
            time=time,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            given_back=lambda: wake(BALANCE),
            rest=ELECTOR_REST if hinted else None,
        )
        recovery = Recovery(
            missing=Missing(database, node),
            time=time,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
        )
        self.planner = Planner(
            planning=Planning(database, node, settings.margin),
            catching=Catching(database, node),
            recovery=recovery,
            renewal=renewal,
            pace=self.pace,
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            tzdata=tzdata,
            hint=hint,
        )
        self.referee = Referee(
            refereeing=Refereeing(database, node),
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
            hint=hint,
        )
        self.publisher = Publisher(
            publishing=Publishing(database, node),
            recovery=recovery,
            renewal=renewal,
            pace=self.pace,
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            transaction_timeout=database_settings.transaction_timeout,
            referee=self.referee,
            relived=Relived(
                sweeping=Sweeping(database, node),
                time=time,
                clock=clock,
                telemetry=telemetry,
                lead=settings.lead,
            ),
            hint=hint,
        )
        self.sweeper = Sweeper(
            sweeping=Sweeping(database, node),
            shards=shards,
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
        )
        self.deadlines = DeadlineKeeper(
            deadlines=Deadlines(database, node),
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
        )
        self.zones = ZoneKeeper(
            zones=Zones(database, node),
            shards=shards,
            holdings=holdings,
            time=time,
            clock=clock,
            telemetry=telemetry,
            horizon=settings.horizon,
            tzdata=tzdata,
        )
        self._time = time
        self.duties: Mapping[str, Duty] = {
            "elector": self.elector,
            "zones": self.zones,
            "planner": self.planner,
            "publisher": self.publisher,
            "sweeper": self.sweeper,
            "deadlines": self.deadlines,
            **(besides or {}),
        }

    async def run(self, stopping: Stopping) -> None:
        """Run the loops of all duties; when they have ended, give the shards back."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, duty in self.duties.items():
                    group.create_task(duty.run(stopping), name=name)
        finally:
            await self.elector.hand_over()

    def look_soon(self) -> None:
        """Somebody has made a job that fires soon, or a run about which is to be decided."""
        self.planner.nudge.set()
        self.referee.look_soon()

    async def tick(self, *, without: Collection[str] = ()) -> int:
        """One pass of each, in order; what tests crank. Returns how many runs were published.

        A test that looks at one duty by itself goes on `without` it.
        """
        done = {
            name: await duty.tick() for name, duty in self.duties.items() if name not in without
        }
        return cast("int", done.get("publisher", 0))

    async def _living(self) -> Mapping[NodeId, int | None]:
        since = self._time.now() - self._alive_within - timedelta(milliseconds=1)
        seen = await nodes.seen_since(self._database, since)
        return {one.id: one.capacity for one in seen if ROLE in one.roles and not one.draining}

    async def _note_capacity(self, capacity: int | None) -> None:
        await nodes.note_capacity(self._database, self.node, capacity)
