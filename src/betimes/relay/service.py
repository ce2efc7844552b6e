"""Carries committed rows of an outbox to the service, again and again until it has them.

A row is deleted when the service has answered for it. Whoever dies in between sends it again with
the same idempotency key, and the service answers with the run it has made already.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import msgspec

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.relay.outboxes import Outbox, Row, Verdict
from betimes.rhythm import Stopping, attend, beat
from betimes.sdk.client import AsyncClient
from betimes.sdk.errors import ApiError, Unreachable
from betimes.sdk.exchange import Given
from betimes.sdk.operations import RUNS_CREATE
from betimes.telemetry import Outage, Telemetry

BATCH_MAX = 200
SENDING_MAX = 20
LATER = timedelta(seconds=5)
TELL_EVERY_SECONDS = 60.0
NOT_OURS = frozenset({401, 403})
"""Answers about our key, not about a row: nothing is put aside because of them."""
PASSING = frozenset({408, 409, 425, 429})
SERVER_ERRORS = 500

Send = Callable[[Row], Awaitable[None]]


class Relay:
    """A pass over the outbox with every beat; a full batch is followed by the next at once."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        send: Send,
        clock: Clock,
        telemetry: Telemetry,
        every: timedelta,
        batch_max: int = BATCH_MAX,
    ) -> None:
        self._outbox = outbox
        self._send = send
        self._clock = clock
        self._telemetry = telemetry
        self._every = every
        self._batch_max = batch_max
        self._rows = telemetry.counter("betimes_relay_rows_total")
        self._oldest = telemetry.gauge("betimes_relay_oldest_seconds")
        self._outage = Outage(duty="relay", telemetry=telemetry)
        self._nudge = asyncio.Event()
        self._told_at = clock.monotonic()
        self._untold: Counter[str] = Counter()

    async def run(self, stopping: Stopping) -> None:
        """Carry until asked to stop; a batch that has begun is finished."""
        beats = beat(self._clock, every=self._every, stopping=stopping, nudge=self._nudge)
        try:
            await attend(self.tick, beats=beats, troubles=self._outage)
        finally:
            self._tell()
            await self._outbox.close()

    async def tick(self) -> int:
        """One batch; how many rows the service has now.

        Raises:
            Unavailable: the service or the outbox is away, or our key is not accepted.

        """
        with self._telemetry.span("relay.tick") as span:
            span.expect_errors()
            async with self._outbox.batch(self._batch_max) as batch:
                self._oldest.set(max((row.age_seconds for row in batch.rows), default=0.0))
                verdict, trouble = await self._carry(batch.rows)
                await batch.settle(verdict)
            self._count(verdict)
            span.add(rows=len(verdict.carried))
        if trouble is not None:
            raise trouble
        if len(batch.rows) == self._batch_max:
            self._nudge.set()
        return len(verdict.carried)

    async def _carry(self, rows: Sequence[Row]) -> tuple[Verdict, Unavailable | None]:
        verdict = Verdict()
        troubles: list[Unavailable] = []
        turns = iter(rows)

        async def send_some() -> None:
            for row in turns:
                if troubles:
                    return  # whoever is away is not asked for every row
                try:
                    await self._send(row)
                    verdict.carried.append(row.id)
                except Unreachable as away:
                    troubles.append(Unavailable(f"the service is away: {away}"))
                except ApiError as error:
                    _judge(row, error, verdict, troubles)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(SENDING_MAX, len(rows))):
                group.create_task(send_some())
        return verdict, troubles[0] if troubles else None

    def _count(self, verdict: Verdict) -> None:
        for outcome, count in (
            ("carried", len(verdict.carried)),
            ("refused", len(verdict.refused)),
            ("later", len(verdict.later)),
        ):
            if count:
                self._rows.add(count, outcome=outcome)
                self._untold[outcome] += count
        for row, why in verdict.refused.items():
            self._telemetry.event("relay.refused", level="warning", row=row, why=why)
        if self._clock.monotonic() - self._told_at >= TELL_EVERY_SECONDS:
            self._tell()

    def _tell(self) -> None:
        """Now and then in the log: a relay has no metrics page of its own."""
        if self._untold:
            told = {name: float(self._untold[name]) for name in ("carried", "refused", "later")}
            self._telemetry.event("relay.carried", level="info", measurements=told)
            self._untold.clear()
        self._told_at = self._clock.monotonic()


def _judge(row: Row, error: ApiError, verdict: Verdict, troubles: list[Unavailable]) -> None:
    status = error.problem.status
    if status in NOT_OURS:
        troubles.append(Unavailable(f"the service does not accept our key: {error}"))
    elif status in PASSING or status >= SERVER_ERRORS or error.problem.retryable:
        verdict.later[row.id] = LATER
    else:
        verdict.refused[row.id] = str(error)


def sender(client: AsyncClient) -> Send:
    """Sends rows as `POST /v1/runs`, each with its id as idempotency key."""

    async def send(row: Row) -> None:
        body = {**msgspec.json.decode(row.options), "handler": row.handler}
        if row.payload is not None:
            body["payload"] = msgspec.Raw(row.payload.encode())
        await client.perform(RUNS_CREATE, Given(body=body, idempotency_key=row.id))

    return send
