"""What `betimes dev` shows: a few jobs that fire before your eyes.

The jobs are ordinary jobs of the default tenant in the group `demo`; they stay in the database, and
a second start finds them there. The reminder is made anew with every start.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from betimes.app.desk import desk_of
from betimes.app.masters import opening_vault
from betimes.app.node import Node
from betimes.domain.errors import AlreadyExists
from betimes.domain.ids import TenantId
from betimes.domain.job import AfterCompletion, Definition
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.rhythm import Stopping
from betimes.schedule import parse
from betimes.store.hints import Hints
from betimes.worker import Context, Handlers
from betimes.worker.builtin import builtin_handlers

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
GROUP = "demo"

Print = Callable[[str], None]


class FlakyError(Exception):
    """What the flaky demo raises the first time."""


JOBS = {
    "every-five-seconds": Definition(
        schedule={"type": "interval", "every": "PT5S"}, handler="demo.say", payload=b"tick"
    ),
    "every-minute": Definition(
        schedule={"type": "cron", "expr": "* * * * *"},
        handler="demo.say",
        payload=b"a new minute",
        priority=9,
    ),
    "flaky": Definition(
        schedule={"type": "interval", "every": "PT20S"},
        handler="demo.flaky",
        payload=b"second try",
        options={"retry": {"initial_ms": 2_000, "backoff": "fixed", "jitter": "none"}},
    ),
}
REMINDER = Definition(
    schedule={"type": "delay", "after": "PT12S"},
    handler="demo.say",
    payload=b"your reminder of twelve seconds ago",
    after_completion=AfterCompletion.DELETE,
)


def demo_handlers(node: Node, show: Print) -> Handlers:
    """The built-in handlers, and those that show their runs."""
    handlers = builtin_handlers(node.clock)

    def shown(context: Context, words: str) -> None:
        lag_ms = (context.started_at - context.due_at).total_seconds() * 1000
        at = context.started_at.strftime("%H:%M:%S.%f")[:-3]
        show(f"{at}  {context.run_id}  attempt {context.attempt}  lag {lag_ms:4.0f} ms  {words}")

    async def say(context: Context) -> None:
        shown(context, (context.payload or b"").decode())

    async def flaky(context: Context) -> None:
        if context.attempt == 1:
            shown(context, "fails, will be tried again in two seconds")
            raise FlakyError("the first try always fails")
        shown(context, (context.payload or b"").decode())

    handlers.add("demo.say", say)
    handlers.add("demo.flaky", flaky)
    return handlers


class Demo:
    """A role that puts the demo's jobs into the database and then only waits."""

    def __init__(self, *, node: Node) -> None:
        self._node = node
        self._hints = Hints(database=node.database, clock=node.clock)

    async def run(self, stopping: Stopping) -> None:
        """Make what is missing."""
        async with asyncio.TaskGroup() as group:
            hinting = group.create_task(self._hints.run(), name="demo.hints")
            try:
                vault = await opening_vault(self._node)
                await self._create(await desk_of(self._node, self._hints, vault=vault))
                await stopping.wait()
            finally:
                hinting.cancel()

    async def _create(self, desk: Desk) -> None:
        for name, definition in JOBS.items():
            try:
                await create_job(desk, TENANT, self._new(definition, name))
            except AlreadyExists:
                continue
        await create_job(desk, TENANT, self._new(REMINDER))

    def _new(self, definition: Definition, name: str | None = None) -> NewJob:
        # Whatever counts from the creation, such as a delay, begins now.
        schedule = parse(definition.schedule, now=self._node.clock.now(), timezone="UTC").to_dict()
        return NewJob(definition=replace(definition, schedule=schedule), name=name, group=GROUP)
