"""What tests of deliveries by whole workers share: workers with gates of their own, by hand."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from betimes.app.delivery import StoredBreakers
from betimes.domain.outcome import Outcome, Snoozed
from betimes.store.database import Database
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery
from betimes.target.gate import Rules
from betimes.target.gates import Gates
from betimes.target.url import UrlPolicy
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker import Context
from betimes.worker.builtin import builtin_handlers
from target_kit import DEV, FakeTarget, a_client
from worker_kit import TENANT, Bench, a_worker, enqueue, rows, worker_id

RETRY = {"max_attempts": 500, "backoff": "fixed", "initial_ms": 45_000, "jitter": "none"}


async def open_to_all(_: UUID) -> UrlPolicy:
    return DEV


class Crew:
    """Workers with gates of their own, who share breakers."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.benches: list[Bench] = []
        self.gates: list[Gates] = []
        self.put_back: Counter[str] = Counter()
        """How often each run was leased without a request."""

    @asynccontextmanager
    async def worker(self, number: int = 1) -> AsyncIterator[Gates]:
        await rows(
            self.database,
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A')"
            " ON CONFLICT DO NOTHING",
            TENANT,
        )
        gates = Gates(
            rules=Rules(),
            clock=self.clock,
            telemetry=Telemetry(clock=self.clock),
            breakers=StoredBreakers(self.database, worker_id(number), clock=self.clock),
        )
        async with a_client() as client:
            delivery = Delivery(
                client=client,
                clock=self.clock,
                policies=open_to_all,
                patience=Patience(),
                gates=gates,
            )

            async def deliver(context: Context) -> Outcome:
                outcome = await delivery.deliver(context)
                self.put_back[context.run_id] += isinstance(outcome, Snoozed)
                return outcome

            handlers = builtin_handlers(self.clock).also("http", deliver)
            async with a_worker(
                self.database, self.clock, handlers=handlers, number=number
            ) as bench:
                self.benches.append(bench)
                self.gates.append(gates)
                yield gates
                self.benches.remove(bench)

    async def step(self, seconds: float) -> None:
        """Time passes, and everybody does what is due."""
        self.clock.advance(seconds)
        for gates in self.gates:
            await gates.tick()
        for bench in self.benches:
            await bench.poll_once()
            while len(bench.parts.executor.running):
                running = [one.task for one in bench.parts.executor.running]
                _, waiting = await asyncio.wait(running, timeout=0.05)
                if waiting:
                    self.clock.advance(0.1)  # who stands in line looks at the clock
            await bench.parts.reporter.flush()
            await bench.poll_once()
        self.benches.reverse()  # whoever looks first finds the most

    async def ask(
        self,
        target: FakeTarget,
        count: int,
        *,
        together: bool = True,
        retry: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Runs to a target."""
        options = {"target": {"type": "http", "url": target.url()}, "retry": retry or RETRY}
        nobody: list[Any] = [None]
        now = self.clock.now()
        if together:
            return await enqueue(self.database, now, nobody * count, options=options)
        found = [await enqueue(self.database, now, nobody, options=options) for _ in range(count)]
        return [run for (run,) in found]
