"""The roads over a real database: one world, three kinds of workers in it.

Everybody asks and looks through the real API, served on this machine; the clock of the test is that
of the service, of the database and of every worker.

Long because the three kinds of workers share one world and are asked the same questions of it.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from api_kit import DEFAULT, Served, make_service
from betimes import App, Context
from betimes.api.application import Application
from betimes.api.routes import ROUTES
from betimes.api.server import Server
from betimes.app.direct import DirectNotes
from betimes.app.task_worker import Grounds, TaskRegistry, service_of
from betimes.config.settings import (
    CoordinatorSettings,
    DatabaseSettings,
    JanitorSettings,
    WorkerSettings,
)
from betimes.coordinator.service import Coordinator
from betimes.domain.ids import (
    TAIL_BYTES,
    NodeId,
    TenantId,
    compose,
    from_text,
    random_ids,
    to_ms,
    to_text,
)
from betimes.executing.processes import Processes
from betimes.janitor.service import Janitor
from betimes.ops.blobs import keep_blob, new_blob, read_reference
from betimes.rhythm import Stopping
from betimes.runtime.courier import Courier
from betimes.runtime.http_line import http_lines
from betimes.runtime.line import Line
from betimes.runtime.task_handlers import handlers_of
from betimes.runtime.worker import WorkerOptions
from betimes.sdk.context import current_context
from betimes.sdk.errors import InvalidState
from betimes.sdk.schedules import members_of
from betimes.store import nodes
from betimes.store.database import Database
from betimes.store.nodes import NodeCard
from betimes.store.pool import Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from betimes.worker import Chance
from betimes.worker.service import Large
from conformance.app_hand import AppHand
from conformance.hands import LEASE, PLACES, Tasks, entropy, half
from conformance.roads import DIRECT, HTTP, SERVER, TTL, Began, Bodies, Body, Hand, Letter, Seen
from conformance.server_hand import ServerHand, new_identity, served_all

BEAT_SECONDS = TTL / 3
OUTCOMES = ("succeeded", "failed", "timed_out", "snoozed", "cancelled", "released", "abandoned")
BEGINNINGS = {"run.created", "run.scheduled", "run.queued", "run.started"}


@asynccontextmanager
async def serving(database: Database, clock: ManualClock) -> AsyncIterator[Served]:
    """The real application on a real socket, by the clock of the test."""
    recorder = Recorder()
    service = make_service(database, clock, recorder, lease_ttl=LEASE)
    server = Server(Application(service=service, routes=ROUTES))
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        listening.setblocking(False)
        loop = asyncio.get_running_loop()
        grouping = loop.create_task(service.run())
        running = loop.create_task(server.serve(sockets=[listening]))
        try:
            yield Served(service, listening.getsockname()[1], recorder, service.desk, server)
        finally:
            service.draining.begun = True
            server.should_exit = True
            await running
            grouping.cancel()
            await asyncio.gather(grouping, return_exceptions=True)


class DatabaseRoad:
    """A world on a database; what its workers are is said by its name."""

    def __init__(
        self, name: str, database: Database, clock: ManualClock, served: Served, app: App
    ) -> None:
        self.name = name
        self._database = database
        self._clock = clock
        self._served = served
        self._app = app
        self._group = Tasks()
        self._stack = AsyncExitStack()
        self._bodies = Bodies(clock.now)
        self._hands: list[ServerHand | AppHand] = []
        self._coordinator: Coordinator | None = None
        self._begun_at = clock.now()
        self._janitor = Janitor(
            desk=served.desk,
            clock=clock,
            telemetry=Telemetry(clock=clock),
            settings=JanitorSettings(),
            new_id=lambda: next(random_ids(to_ms(clock.now()), 0, entropy(TAIL_BYTES))),
        )

    @property
    def began(self) -> list[Began]:
        return self._bodies.began

    @property
    def most_at_once(self) -> int:
        return self._bodies.most_at_once

    async def close(self) -> None:
        for hand in self._hands:
            hand.kill()
        await self._group.close()
        await self._stack.aclose()

    # --- tasks and runs ---

    def task(self, name: str, body: Body, **options: Any) -> None:
        noted = self._bodies.noted(body)

        async def run(ctx: Context, given: Any = None) -> Any:
            return await noted(ctx, given)

        self._app.task(name=name, **options)(run)

    async def spend(self, seconds: float) -> None:
        ctx = current_context()
        assert ctx is not None, "only a task takes time"
        async with self._bodies.rest(ctx):
            await self._clock.sleep(seconds)

    async def enqueue(self, name: str, given: Any = None, **options: Any) -> str:
        if "payload_ref" not in options:
            options["payload"] = {"given": given}
        made = await self._app.async_client.runs.create(handler=name, **options)
        return made.id

    async def enqueue_together(self, name: str, *several: Mapping[str, Any]) -> list[str]:
        items = [{"handler": name, "payload": {}, **options} for options in several]
        made = await self._app.async_client.runs.create_many(items=items)
        return [str(one.id) for one in made.items]

    async def cancel(self, run: str) -> bool:
        try:
            await self._app.async_client.runs.cancel(run)
        except InvalidState:
            return False
        return True

    # --- time ---

    async def advance(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            step = min(left, BEAT_SECONDS)
            await self._pass(step)
            left -= step

    async def live(self, seconds: float) -> None:
        await self._schedule()
        for _ in range(int(seconds)):
            await self._pass(1.0)
            await self._coordinate()
            for hand in self._hands:
                await hand.work()

    async def _pass(self, seconds: float) -> None:
        self._clock.advance(seconds)
        for hand in self._hands:
            hand.ring()
        for hand in self._hands:
            await hand.beat()
        await self._janitor.reaper.tick()
        await self._janitor.offerer.tick()

    async def _schedule(self) -> None:
        """What the decorators of the app say, as jobs; and somebody who plans them."""
        if self._coordinator is not None:
            return
        self._coordinator = Coordinator(
            node=NodeId(compose(1, 0, 1)),
            database=self._database,
            clock=self._clock,
            telemetry=Telemetry(clock=self._clock),
            settings=CoordinatorSettings(),
            database_settings=DatabaseSettings(),
            tzdata="2026a",
        )
        for task in self._app.tasks.values():
            if task.options.get("schedule"):
                await self._app.async_client.jobs.create(
                    name=task.name,
                    handler=task.name,
                    payload={},
                    schedule=members_of(task),
                )

    async def _coordinate(self) -> None:
        assert self._coordinator is not None
        card = NodeCard(
            id=self._coordinator.node, name="n", version="0", tzdata="test", roles=("coordinator",)
        )
        now = self._clock.stated()
        await nodes.beat(self._database, card, skew_ms=None, draining=False, now=now)
        await self._coordinator.tick()

    # --- workers ---

    async def hire(self, *, knows: Sequence[str] | None = None) -> Hand:
        app = self._known(knows)
        hand: ServerHand | AppHand
        if self.name == SERVER:
            hand = ServerHand(
                database=self._database,
                clock=self._clock,
                identity=new_identity(self._clock),
                handlers=served_all(list(app.tasks.values())),
                group=self._group,
                bodies=self._bodies,
                large=self._large(),
            )
        elif self.name == DIRECT:
            hand = await self._task_hand(app)
        else:
            hand = await AppHand.made(
                app,
                await self._line(),
                clock=self._clock,
                group=self._group,
                bodies=self._bodies,
            )
        self._hands.append(hand)
        return hand

    async def _task_hand(self, app: App) -> ServerHand:
        """The engine with an app's tasks, as `betimes worker run` puts it together."""
        desk = self._served.desk
        notes = DirectNotes(desk, DEFAULT)
        grounds = Grounds(
            desk=desk,
            tenant=DEFAULT,
            chance=Chance(roll=half, entropy=entropy),
            open_database=lambda: None,  # type: ignore[arg-type, return-value]  # beats are cranked
            listen=lambda _: None,
            notes=notes,
            settings=WorkerSettings(),
            ttl=LEASE,
        )
        courier = Courier(notes=notes, clock=self._clock, loop=asyncio.get_running_loop())
        registry = TaskRegistry(
            desk=desk,
            app=app,
            tenant=DEFAULT,
            options=WorkerOptions(name="hand", concurrency=PLACES),
            every=LEASE / 3,
            clock=self._clock,
            telemetry=Telemetry(clock=self._clock),
            stopping=Stopping(),
            roll=half,
        )
        await registry.enter()
        processes = Processes(1)
        self._stack.callback(processes.close)
        return ServerHand(
            database=self._database,
            clock=self._clock,
            identity=registry.worker.id,
            handlers=handlers_of(app, service_of(grounds, registry.worker, courier), processes),
            group=self._group,
            bodies=self._bodies,
            large=self._large(),
            tenant=DEFAULT,
            courier=courier,
        )

    def _known(self, knows: Sequence[str] | None) -> App:
        if knows is None:
            return self._app
        app = App(name="some")
        for name in knows:
            app._add(self._app.tasks[name])
        return app

    async def _line(self) -> Line:
        assert self.name == HTTP
        key = await self._served.key(kind="wk")
        opened = http_lines(f"http://127.0.0.1:{self._served.port}", key)
        return await self._stack.enter_async_context(opened())

    def _large(self) -> Large:
        desk = self._served.desk

        async def fetch(tenant: TenantId, reference: str) -> bytes:
            return await read_reference(desk, tenant, reference)

        async def keep(tenant: TenantId, content: bytes) -> str:
            blob = new_blob(desk, content, media_type="application/json")
            return await keep_blob(desk, tenant, blob)

        return Large(fetch=fetch, keep=keep)

    async def expire(self, run: str) -> None:
        await self._rows(
            "UPDATE betimes.parcels SET lease_until = $2 WHERE run_ids @> ARRAY[$1::uuid]"
            " AND worker_id IS NOT NULL",
            _id(run),
            self._clock.now() - timedelta(seconds=1),
        )
        assert await self._janitor.reaper.tick() == 1

    # --- settings and large things ---

    async def limit(self, queue: str, **settings: Any) -> None:
        await self._app.async_client.queues.put(queue, **settings)

    async def keep(self, content: bytes) -> str:
        desk = self._served.desk
        blob = new_blob(desk, content, media_type="application/json")
        return await keep_blob(desk, DEFAULT, blob)

    async def kept(self, reference: str) -> bytes:
        return await read_reference(self._served.desk, DEFAULT, reference)

    # --- looking ---

    async def look(self, run: str) -> Seen:
        shown = await self._app.async_client.runs.get(run, view="full", include=["attempts"])
        reason, error = shown.state_reason, shown.error
        history = [
            (one.number, one.outcome) for one in shown.attempts or () if one.outcome in OUTCOMES[1:]
        ]
        return Seen(
            state=shown.state,
            attempt=shown.attempt,
            reason=None if reason is None else reason.code,
            result=shown.result or None,
            result_ref=shown.result_ref,
            error=None if error is None else (error.type, error.message),
            attempts=tuple(history),
            percent=None if shown.progress is None else shown.progress.get("percent"),
        )

    async def fires(self, name: str) -> dict[int, str]:
        rows = await self._rows(
            "SELECT run.id, run.fire_at FROM betimes.runs AS run JOIN betimes.jobs AS job"
            " ON job.id = run.job_id WHERE job.name = $1 AND run.fire_at <= $2",
            name,
            self._clock.now(),
        )
        return {
            int((row["fire_at"] - self._begun_at).total_seconds()): (
                await self.look(to_text("run", row["id"]))
            ).state
            for row in rows
        }

    async def letters(self) -> list[Letter]:
        rows = await self._rows("SELECT * FROM betimes.dead_letters ORDER BY run_id")
        return [
            Letter(
                to_text("run", row["run_id"]), row["attempts"], row["reason"], row["fingerprint"]
            )
            for row in rows
        ]

    async def events(self, run: str) -> list[str]:
        rows = await self._rows("SELECT type FROM betimes.outbox WHERE subject = $1", run)
        return sorted(row["type"] for row in rows if row["type"] not in BEGINNINGS)

    async def at_rest(self) -> bool:
        return not await self._rows("SELECT FROM betimes.parcels")

    async def _rows(self, statement: str, *given: Any) -> list[asyncpg.Record]:
        async with self._database.connection(Lane.ENGINE) as connection:
            return await connection.fetch(statement, *given)


def _id(run: str) -> UUID:
    return from_text("run", run)


@asynccontextmanager
async def database_road(
    name: str, database: Database, clock: ManualClock
) -> AsyncIterator[DatabaseRoad]:
    """A world in which everything that ends is told."""
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            'UPDATE betimes.tenants SET settings = settings || \'{"run_events": "all"}\''
        )
    async with serving(database, clock) as served:
        app = App(f"http://127.0.0.1:{served.port}", await served.key(), name="conformance")
        road = DatabaseRoad(name, database, clock, served, app)
        try:
            yield road
        finally:
            await road.close()
            await app.aclose()
