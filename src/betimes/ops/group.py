"""Group commit: runs that callers enqueue one by one at the same time share a transaction.

A commit costs one flush to disk, whatever is in it. The first caller does not wait: its transaction
begins at once. Whoever comes while it is under way is collected and goes with the next one, so the
busier it gets, the larger the groups, and an idle system adds no delay.
"""

import asyncio
from dataclasses import dataclass, field

from betimes.domain.errors import Refused, SchedulerError, Unavailable, UnknownOutcome
from betimes.domain.ids import RunId, TenantId
from betimes.domain.run import NewRun
from betimes.ops.checks import check_payload, check_run
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_runs

COLLECT_SECONDS = 0.0015
RUNS_MAX = 500
COMMITS_MAX = 3


@dataclass(slots=True)
class _Batch:
    runs: list[NewRun] = field(default_factory=list)
    callers: "list[asyncio.Future[RunId]]" = field(default_factory=list)


class EnqueueGroup:
    """Collects single runs per tenant; `run` is its loop and belongs into a TaskGroup."""

    def __init__(
        self,
        *,
        desk: Desk,
        collect_seconds: float = COLLECT_SECONDS,
        runs_max: int = RUNS_MAX,
        commits_max: int = COMMITS_MAX,
    ) -> None:
        self._desk = desk
        self._collect_seconds = collect_seconds
        self._runs_max = runs_max
        self._commits_max = commits_max
        self._waiting: dict[TenantId, _Batch] = {}
        self._changed = asyncio.Event()
        self._free = asyncio.Semaphore(commits_max)
        self._committing = 0
        self._ended = False
        self.commits = 0

    async def enqueue(self, tenant: TenantId, new: NewRun) -> RunId:
        """One run; returns when it is durable.

        A caller that gives up does not take its run back: whether it was enqueued is then unknown,
        as with every request that is cut off.
        """
        check_run(new)
        check_payload(new.payload)
        if self._ended:
            raise Unavailable("the node stops; nothing was enqueued")
        batch = self._waiting.setdefault(tenant, _Batch())
        caller: asyncio.Future[RunId] = asyncio.get_running_loop().create_future()
        batch.runs.append(new)
        batch.callers.append(caller)
        self._changed.set()
        return await caller

    async def run(self) -> None:
        """Commit groups until cancelled; whoever still waits then gets an error."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._changed.wait()
                    if self._committing:
                        await self._desk.clock.sleep(self._collect_seconds)
                    await self._free.acquire()
                    group.create_task(self._commit(*self._take()))
        finally:
            for batch in self._waiting.values():
                _fail(batch, Unavailable("the node stops; nothing was enqueued"))
            self._ended = True

    def _take(self) -> tuple[TenantId, _Batch]:
        """The group of the tenant that has waited longest, cut to what one transaction may hold."""
        tenant, batch = next(iter(self._waiting.items()))
        del self._waiting[tenant]
        if len(batch.runs) > self._runs_max:
            most = self._runs_max
            self._waiting[tenant] = _Batch(batch.runs[most:], batch.callers[most:])
            batch = _Batch(batch.runs[:most], batch.callers[:most])
        if not self._waiting:
            self._changed.clear()
        self._committing += 1
        return tenant, batch

    async def _commit(self, tenant: TenantId, batch: _Batch) -> None:
        try:
            await self._enqueue(tenant, batch)
        except asyncio.CancelledError:
            _fail(batch, UnknownOutcome("the node stops; it may have been enqueued"))
            raise
        finally:
            self._committing -= 1
            self._free.release()

    async def _enqueue(self, tenant: TenantId, batch: _Batch) -> None:
        try:
            runs = await enqueue_runs(self._desk, tenant, batch.runs)
            self.commits += 1
        except Refused as error:
            # One of them is at fault; the others must not suffer for it.
            if len(batch.runs) == 1:
                _fail(batch, error)
                return
            for new, caller in zip(batch.runs, batch.callers, strict=True):
                await self._enqueue(tenant, _Batch([new], [caller]))
        except SchedulerError as error:
            _fail(batch, error)
        else:
            for run, caller in zip(runs, batch.callers, strict=True):
                if not caller.done():
                    caller.set_result(run)


def _fail(batch: _Batch, error: Exception) -> None:
    for caller in batch.callers:
        if not caller.done():
            caller.set_exception(error)
