"""The worker protocol without the network: the verbs behind the routes, on the database itself.

What a worker of an app is told and reports is the same as over HTTP, and so is what becomes of it;
there is one process and one hop less.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from betimes.api.leasing import read_token, write_token
from betimes.api.problem import Trouble
from betimes.api.routes.leases import report_many
from betimes.api.routes.workers import HEARTBEATS_PER_LEASE, WORKER
from betimes.api.shaping import maybe_instant, maybe_span
from betimes.api.waiters import Waiters
from betimes.domain.errors import FencedOut
from betimes.domain.ids import TenantId, WorkerId, from_text, to_text
from betimes.domain.trace import traceparent_of
from betimes.ops import leases, workers
from betimes.ops.blobs import read_reference
from betimes.ops.desk import Desk
from betimes.ops.schemas import declared
from betimes.ops.turns import Turns
from betimes.runtime.line import NOTHING, Grant
from betimes.wire import workers as wire
from betimes.wire.base import shown_duration, shown_instant

POLL_SECONDS = 1.0


class DirectLine:
    """A line on a desk; `waiters` wake it when work comes."""

    def __init__(
        self,
        *,
        desk: Desk,
        tenant: TenantId,
        waiters: Waiters,
        secret: bytes,
        roll: Callable[[], float],
        ttl: timedelta,
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._waiters = waiters
        self._secret = secret
        self._roll = roll
        self._ttl = ttl
        self._turns = Turns()

    async def register(self, worker: wire.NewWorker) -> wire.Registered:
        """Make the worker known."""
        named = [one for one in worker.handlers if not isinstance(one, str)]
        schemas = {
            one.name: declared(one.name, one.schema, pointer=f"/handlers/{one.name}/schema")
            for one in named
            if one.schema is not None
        }
        made = workers.new_worker(
            self._desk,
            self._tenant,
            name=worker.name,
            version=worker.version,
            queues=worker.queues,
            handlers=[one.name for one in named],
            slots=worker.slots,
            labels=worker.labels,
            details={
                "host": worker.host,
                "pid": worker.pid,
                "sdk": worker.sdk,
                "schemas": {name: one.digest for name, one in schemas.items()},
            },
        )
        await workers.register(self._desk, made, schemas)
        return wire.Registered(
            worker_id=to_text(WORKER, made.id),
            heartbeat_interval=shown_duration(self._ttl / HEARTBEATS_PER_LEASE),
            lease_duration=shown_duration(self._ttl),
            server_time=shown_instant(await self._now()),
        )

    async def lease(self, worker: str, wanted: wire.LeaseRuns) -> list[Grant]:
        """Runs to do, as soon as there are some or patience ends."""
        identity, queues = _worker(worker), wanted.queues or []
        clock = self._desk.clock
        deadline = clock.monotonic() + wanted.wait
        while True:
            woken = self._waiters.enter(queues, self._tenant)
            try:
                found = await workers.lease_runs(
                    self._desk,
                    self._tenant,
                    identity,
                    queues=queues,
                    handlers=wanted.handlers,
                    most=wanted.max,
                    ttl=self._ttl,
                    turns=self._turns,
                )
                left = deadline - clock.monotonic()
                if found or left <= 0:
                    return [self._grant(one) for one in found]
                await _nap(woken, min(left, POLL_SECONDS))
            finally:
                self._waiters.leave(queues, self._tenant, woken)

    async def fetch(self, grant: Grant) -> bytes:
        """The payload that the grant refers to."""
        return await read_reference(self._desk, self._tenant, grant.payload_ref or "")

    def _grant(self, one: workers.Leased) -> Grant:
        run, spec = one.run, one.spec
        payload = run.payload if run.payload is not None else spec.payload
        kept = None if one.note is None else one.note.checkpoint
        text = to_text("run", run.id)
        return Grant(
            run_id=text,
            lease_id=write_token(self._secret, self._tenant, one.lease, queue=one.queue),
            fence=one.lease.fence,
            attempt=one.lease.attempt,
            max_attempts=spec.retry.max_attempts,
            due_at=run.due_at,
            queue=one.queue,
            priority=one.priority,
            idempotency_key=text,
            traceparent=traceparent_of(run.id, one.lease.attempt),
            handler=run.handler or spec.handler,
            job_id=None if run.job is None else to_text("job", run.job),
            scheduled_for=run.fire_at,
            payload=NOTHING if payload is None else msgspec.Raw(payload),
            payload_ref=spec.options.get("payload_ref"),
            timeout=None if spec.timeout is None else shown_duration(spec.timeout),
            checkpoint=None if kept is None else msgspec.json.decode(kept),
            tags=dict(spec.options.get("tags") or {}),
        )

    async def beat(self, worker: str, told: wire.Heartbeat) -> wire.HeartbeatAnswer:
        """A sign of life."""
        names = {self._held(one.lease_id): one for one in told.running}
        spans = {
            lease: maybe_span(one.by, pointer="/by") or self._ttl for lease, one in names.items()
        }
        answer = await workers.beat(
            self._desk, self._tenant, _worker(worker), spans, draining=told.state == "draining"
        )
        commands = [
            wire.Command(type="cancel", lease_id=names[one].lease_id) for one in answer.cancelled
        ]
        if answer.draining and told.state != "draining":
            commands.append(wire.Command(type="drain"))
        return wire.HeartbeatAnswer(
            commands=commands,
            extended=[
                wire.Extended(lease_id=names[one].lease_id, expires_at=shown_instant(at))
                for one, at in answer.extended.items()
            ],
            lost=[names[one].lease_id for one in answer.lost],
        )

    async def report(self, reports: Sequence[wire.ReportOne]) -> list[wire.Reported]:
        """What became of attempts."""
        return await report_many(
            self._desk,
            self._tenant,
            reports,
            secret=self._secret,
            roll=self._roll,
        )

    async def progress(self, lease: str, told: wire.Progress) -> None:
        """How far a run has come."""
        await self._note(lease, leases.Note(told.percent, told.message, None))

    async def checkpoint(self, lease: str, data: bytes) -> None:
        """Where its next attempt may begin."""
        await self._note(lease, leases.Note(None, None, data))

    async def log(self, lease: str, lines: Sequence[wire.LogLine]) -> None:
        """Lines for its log."""
        now = await self._now()
        told = [
            leases.LogLine(
                at=maybe_instant(line.at, pointer="/at") or now,
                level=line.level,
                message=line.message,
                fields=line.fields,
            )
            for line in lines
        ]
        await leases.add_logs(self._desk, self._tenant, self._held(lease), told)

    async def leave(self, worker: str) -> None:
        """The worker goes."""
        await workers.delete_worker(self._desk, self._tenant, _worker(worker))

    async def _note(self, lease: str, said: leases.Note) -> None:
        await leases.note(self._desk, self._tenant, self._held(lease), said)

    async def _now(self) -> datetime:
        return await self._desk.transact(self._desk.now, tenant=self._tenant)

    def _held(self, lease: str) -> leases.HeldLease:
        try:
            return read_token(self._secret, self._tenant, lease)
        except Trouble:
            raise FencedOut("the lease is none of this worker's") from None


def _worker(text: str) -> WorkerId:
    identity: UUID = from_text(WORKER, text)
    return WorkerId(identity)


async def _nap(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
