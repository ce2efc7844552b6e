"""The coordinator and the janitor as roles of a node."""

import asyncio
from collections.abc import Mapping

from betimes.app.desk import desk_of
from betimes.app.listening import hears, listener, waking
from betimes.app.masters import opening_vault, possible_vault
from betimes.app.node import Node
from betimes.app.shelves import shelf_of
from betimes.coordinator.advancer import REST as ADVANCER_REST
from betimes.coordinator.advancer import Advancer
from betimes.coordinator.intake import REST as INTAKE_REST
from betimes.coordinator.intake import Intake
from betimes.coordinator.service import Coordinator, Duty
from betimes.domain.ids import TAIL_BYTES, random_ids, to_ms
from betimes.janitor.service import Janitor
from betimes.ops.desk import Desk
from betimes.ops.shelf import Shelf
from betimes.rhythm import Stopping
from betimes.store.hints import ADVANCE, BALANCE, OPERATE, PLAN, WAKE, Hints
from betimes.store.intake import HINTS as ASKED
from betimes.store.listen import Hear


class CoordinatorRole:
    """A coordinator that tells workers what it has published, and hears of new jobs."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hints = Hints(database=node.database, clock=node.clock)

    async def run(self, stopping: Stopping) -> None:
        """Coordinate until asked to stop."""
        async with shelf_of(self._node) as shelf, asyncio.TaskGroup() as group:
            helpers = [group.create_task(self._hints.run(), name="coordinator.hints")]
            desk = await desk_of(
                self._node, self._hints, vault=await opening_vault(self._node), shelf=shelf
            )
            intake, advancer = self._intake(desk), self._advancer(desk)
            coordinator = self._coordinator({"intake": intake, "advancer": advancer})
            ears: dict[str, Hear] = {
                PLAN: lambda *_: coordinator.look_soon(),
                ASKED: lambda *_: intake.nudge.set(),
                WAKE: waking({ADVANCE: advancer.nudge, BALANCE: coordinator.elector.nudge}),
            }

            def hear(channel: str, payload: str) -> None:
                ears[channel](channel, payload)

            if (ear := listener(self._node, [*ears], hear)) is not None:
                helpers.append(group.create_task(ear.run(), name="coordinator.listen"))
            try:
                await coordinator.run(stopping)
            finally:
                for helper in helpers:
                    helper.cancel()
                await self._hints.tick()  # that shards were given back, before the others poll

    def _coordinator(self, besides: Mapping[str, Duty]) -> Coordinator:
        node = self._node
        return Coordinator(
            node=node.card.id,
            database=node.database,
            clock=node.clock,
            telemetry=node.telemetry,
            settings=node.settings.coordinator,
            database_settings=node.settings.database,
            tzdata=node.card.tzdata,
            hint=self._hints.hint,
            wake=self._hints.wake,
            hinted=hears(node),
            besides=besides,
        )

    def _intake(self, desk: Desk) -> Intake:
        node = self._node
        return Intake(
            desk=desk,
            clock=node.clock,
            telemetry=node.telemetry,
            every=node.settings.coordinator.intake_every,
            rest=INTAKE_REST if hears(node) else None,
        )

    def _advancer(self, desk: Desk) -> Advancer:
        node = self._node
        return Advancer(
            desk=desk,
            clock=node.clock,
            telemetry=node.telemetry,
            every=node.settings.coordinator.advance_every,
            rest=ADVANCER_REST if hears(node) else None,
        )


class JanitorRole:
    """A janitor for all shards of the cell."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._hints = Hints(database=node.database, clock=node.clock)

    async def run(self, stopping: Stopping) -> None:
        """Keep house until asked to stop."""
        async with shelf_of(self._node) as shelf:
            await self._keep(stopping, shelf)

    async def _keep(self, stopping: Stopping, shelf: Shelf | None) -> None:
        node = self._node
        vault = await possible_vault(node)
        janitor = Janitor(
            desk=await desk_of(node, self._hints, vault=vault, shelf=shelf),
            clock=node.clock,
            telemetry=node.telemetry,
            settings=node.settings.janitor,
            rotate_after=node.settings.vault.rotate_after,
            new_id=lambda: next(
                random_ids(to_ms(node.clock.now()), 0, node.dice.entropy(TAIL_BYTES))
            ),
            hinted=hears(node),
        )
        async with asyncio.TaskGroup() as group:
            helpers = [group.create_task(self._hints.run(), name="janitor.hints")]
            hear = waking({OPERATE: janitor.operator.nudge})
            if (ear := listener(node, [WAKE], hear)) is not None:
                helpers.append(group.create_task(ear.run(), name="janitor.listen"))
            try:
                await janitor.run(stopping)
            finally:
                for helper in helpers:
                    helper.cancel()
