"""The dispatcher of a node: router, courier and watcher."""

import asyncio
from collections.abc import Callable

from betimes.config.notify import NotifySettings
from betimes.dispatcher.courier import REST as COURIER_REST
from betimes.dispatcher.courier import Courier
from betimes.dispatcher.route import REST as ROUTER_REST
from betimes.dispatcher.route import Router
from betimes.dispatcher.send import Sender
from betimes.dispatcher.watch import Watcher
from betimes.domain.clock import Clock
from betimes.ops.desk import Desk
from betimes.ops.vault import Vault
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.hints import DELIVER, ROUTE
from betimes.telemetry import Telemetry


class Dispatcher:
    """Tells those who want to know. Any number may run: leases and ids keep them apart.

    Where no hints are heard (not `hinted`), router and courier never rest.
    """

    def __init__(
        self,
        *,
        database: Database,
        sender: Sender,
        clock: Clock,
        telemetry: Telemetry,
        settings: NotifySettings,
        shards: int,
        roll: Callable[[], float],
        entropy: Callable[[int], bytes],
        vault: Vault | None,
        desk: Desk | None = None,
        hinted: bool = True,
    ) -> None:
        nudge = asyncio.Event()
        self.router = Router(
            database=database,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            shards=shards,
            nudge=nudge,
            rest=ROUTER_REST if hinted else None,
        )
        self.courier = Courier(
            database=database,
            sender=sender,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            roll=roll,
            entropy=entropy,
            vault=vault,
            desk=desk,
            nudge=nudge,
            rest=COURIER_REST if hinted else None,
        )

        self.nudges = {DELIVER: nudge, ROUTE: self.router.called}
        """What wakes duties that rest, by the name of the hint."""
        self.watcher = Watcher(
            database=database,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
            shards=shards,
            entropy=entropy,
        )

    async def run(self, stopping: Stopping) -> None:
        """Run the loops."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.router.run(stopping), name="dispatcher.router")
            group.create_task(self.courier.run(stopping), name="dispatcher.courier")
            group.create_task(self.watcher.run(stopping), name="dispatcher.watcher")
