"""The janitor of a node: reaper, partition keeper, pruner, errands, operator and others."""

import asyncio
from datetime import timedelta

from betimes.config.settings import JanitorSettings
from betimes.domain.clock import Clock
from betimes.janitor.clear import Clearer
from betimes.janitor.errands import Errands
from betimes.janitor.offer import Offerer
from betimes.janitor.operate import REST as OPERATOR_REST
from betimes.janitor.operate import Operator
from betimes.janitor.partitions import PartitionKeeper
from betimes.janitor.prune import Pruner
from betimes.janitor.reap import Reaper
from betimes.janitor.rotate import Rotator
from betimes.janitor.survey import Surveyor
from betimes.ops.desk import Desk
from betimes.rhythm import Stopping
from betimes.store.partitions import Partitions
from betimes.store.prune import Pruning
from betimes.store.reap import NewId, Reaping
from betimes.store.repair import Repairing
from betimes.store.retention import Retaining
from betimes.telemetry import Telemetry


class Janitor:
    """Repair and housekeeping. Needs no ownership: locks keep janitors apart."""

    def __init__(
        self,
        *,
        desk: Desk,
        clock: Clock,
        telemetry: Telemetry,
        settings: JanitorSettings,
        new_id: NewId,
        rotate_after: timedelta = timedelta(days=90),
        hinted: bool = True,
    ) -> None:
        database, shards = desk.database, desk.shards
        self.reaper = Reaper(
            reaping=Reaping(database, new_id), clock=clock, telemetry=telemetry, settings=settings
        )
        self.partitions = PartitionKeeper(
            partitions=Partitions(database), clock=clock, telemetry=telemetry, settings=settings
        )
        self.pruner = Pruner(
            pruning=Pruning(database),
            repairing=Repairing(database),
            retaining=Retaining(database),
            shards=shards,
            clock=clock,
            telemetry=telemetry,
            settings=settings,
        )

        self.errands = Errands(desk=desk, clock=clock, telemetry=telemetry)
        self.offerer = Offerer(
            repairing=Repairing(database), hints=desk.hints, clock=clock, telemetry=telemetry
        )
        self.surveyor = Surveyor(partitions=Partitions(database), clock=clock, telemetry=telemetry)
        self.operator = Operator(
            desk=desk, clock=clock, telemetry=telemetry, rest=OPERATOR_REST if hinted else None
        )
        self.clearer = Clearer(
            desk=desk, clock=clock, telemetry=telemetry, every=settings.prune_every
        )
        self.rotator = Rotator(desk=desk, clock=clock, telemetry=telemetry, older_than=rotate_after)

    async def run(self, stopping: Stopping) -> None:
        """Run the loops."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reaper.run(stopping), name="reaper")
            group.create_task(self.partitions.run(stopping), name="partitions")
            group.create_task(self.pruner.run(stopping), name="pruner")
            group.create_task(self.errands.run(stopping), name="errands")
            group.create_task(self.offerer.run(stopping), name="offerer")
            group.create_task(self.surveyor.run(stopping), name="surveyor")
            group.create_task(self.operator.run(stopping), name="operator")
            group.create_task(self.rotator.run(stopping), name="rotator")
            group.create_task(self.clearer.run(stopping), name="clearer")
