"""A service with nothing to do asks for little: so many transactions a minute for each role.

The roles run as in production, on a clock that the test moves. Whoever adds a poll, or makes one
more frequent, breaks a bound here and has to say why (docs/decisions/0087). The bound of a role is
what it asks for today; the sum is what an idle node may cost.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest

from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.app.presence import Presence
from betimes.app.roles import Role
from betimes.app.table import FACTORIES
from betimes.config import Settings
from betimes.config.api import ApiSettings
from betimes.config.settings import EmbeddedSettings
from betimes.domain.ids import NodeId
from betimes.rhythm import Stopping
from betimes.store.nodes import NodeCard
from betimes.store.queries import load, nouns
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker import runner
from betimes.worker.builtin import builtin_handlers
from far_kit import Trips, far_database, pass_time

SETTLING_SECONDS = 90.0
"""Until every duty rests, and what is done once at the start is over."""
MINUTE = 60.0
PRESENCE = "presence"
FRAMES = ("BEGIN", "COMMIT", "ROLLBACK")
BOUNDS = {
    PRESENCE: 62,
    "api": 76,
    "coordinator": 500,
    "worker": 290,
    "janitor": 318,
    "dispatcher": 172,
}
"""Each with what every node asks to say that it is there."""
NODE_MAX = 20 * 60
"""All roles of one node together: below twenty transactions a second."""


async def inline(work: Callable[[], Awaitable[None]], *, name: str) -> None:
    """What a worker does in a thread of its own is a task here: one clock moves everybody."""
    await work()


def named(statements: Counter[str]) -> Counter[str]:
    """Statements by their names, without what only begins and ends transactions."""
    names = {query.text: f"{noun}.{name}" for noun in nouns() for name, query in load(noun).items()}
    return Counter(
        {
            names.get(text, text): count
            for text, count in statements.items()
            if not text.startswith(FRAMES)
        }
    )


async def asked_in_a_minute(
    dsn: str, clock: ManualClock, folder: Path, role: str
) -> tuple[int, Counter[str]]:
    """How many transactions a role makes in a minute in which nothing happens, and of what."""
    trips, stopping = Trips(), Stopping()
    async with far_database(dsn, clock, trips=trips) as database:
        node = Node(
            card=NodeCard(
                id=NodeId(UUID(int=1)), name="n1", version="1", tzdata="2026.1", roles=(role,)
            ),
            settings=Settings(
                api=ApiSettings(port=0), embedded=EmbeddedSettings(data=folder / "data")
            ),
            clock=clock,
            dice=Dice(seed=1),
            telemetry=Telemetry(clock=clock),
            database=database,
            listen_dsn=dsn,
        )
        roles: list[Role] = [Presence(node=node)]
        if role != PRESENCE:
            roles.append(FACTORIES[role](node, builtin_handlers(clock)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run(stopping)) for one in roles]
            await pass_time(clock, SETTLING_SECONDS, trips)
            trips.statements.clear()
            before = trips.transactions
            await pass_time(clock, MINUTE, trips)
            transactions, asked = trips.transactions - before, named(trips.statements)
            stopping.request("measured")
            while not all(task.done() for task in tasks):
                await pass_time(clock, 0.1, trips)
    return transactions, asked


@pytest.mark.parametrize("role", BOUNDS)
async def test_an_idle_role_asks_for_little(
    dsn: str, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setattr(runner, "run_beside", inline)
    transactions, asked = await asked_in_a_minute(dsn, clock, tmp_path, role)
    assert transactions <= BOUNDS[role], asked.most_common()


def test_an_idle_node_stays_below_twenty_a_second() -> None:
    shared = BOUNDS[PRESENCE]
    others = sum(bound - shared for role, bound in BOUNDS.items() if role != PRESENCE)
    assert shared + others < NODE_MAX
