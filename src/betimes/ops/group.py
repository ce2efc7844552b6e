"""Group commit: what callers ask for one by one at the same time shares a transaction.

A commit costs one flush to disk, whatever is in it. The first caller does not wait: its transaction
begins at once. Whoever comes while it is under way is collected and goes with the next one, so the
busier it gets, the larger the groups, and an idle system adds no delay.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from betimes.domain.errors import Refused, SchedulerError, Unavailable, UnknownOutcome
from betimes.domain.ids import RunId, TenantId
from betimes.domain.job import Job
from betimes.domain.run import NewRun
from betimes.ops.checks import check_payload, check_run
from betimes.ops.create import NewJob, check_new_job
from betimes.ops.dedupe import check_dedupe, create_made, enqueue_made
from betimes.ops.desk import Desk

Asked = TypeVar("Asked")
Made = TypeVar("Made")
COLLECT_SECONDS = 0.0015
MEMBERS_MAX = 500
COMMITS_MAX = 3


class _Batch(Generic[Asked, Made]):
    """What waits for one commit."""

    def __init__(self, asked: list[Asked], callers: "list[asyncio.Future[Made]]") -> None:
        self.asked = asked
        self.callers = callers

    def fail(self, error: Exception) -> None:
        for caller in self.callers:
            if not caller.done():
                caller.set_exception(error)

    def tell(self, made: Sequence[Made]) -> None:
        for one, caller in zip(made, self.callers, strict=True):
            if not caller.done():
                caller.set_result(one)


class Group(Generic[Asked, Made]):
    """Collects requests per tenant; `run` is its loop and belongs into a TaskGroup."""

    def __init__(
        self,
        *,
        desk: Desk,
        check: Callable[[Asked], None],
        commit: Callable[[Desk, TenantId, Sequence[Asked]], Awaitable[Sequence[Made]]],
        collect_seconds: float = COLLECT_SECONDS,
        members_max: int = MEMBERS_MAX,
        commits_max: int = COMMITS_MAX,
    ) -> None:
        self._desk = desk
        self._check = check
        self._work = commit
        self._collect_seconds = collect_seconds
        self._members_max = members_max
        self._waiting: dict[TenantId, _Batch[Asked, Made]] = {}
        self._changed = asyncio.Event()
        self._free = asyncio.Semaphore(commits_max)
        self._committing = 0
        self._ended = False
        self.commits = 0

    async def ask(self, tenant: TenantId, asked: Asked) -> Made:
        """One request; returns when it is durable.

        A caller that gives up takes nothing back: whether it happened is then unknown, as with
        every request that is cut off.
        """
        self._check(asked)
        if self._ended:
            raise Unavailable("the node stops; nothing was written")
        batch = self._waiting.setdefault(tenant, _Batch([], []))
        caller: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        batch.asked.append(asked)
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
            self._ended = True
            for batch in self._waiting.values():
                batch.fail(Unavailable("the node stops; nothing was written"))

    def _take(self) -> tuple[TenantId, _Batch[Asked, Made]]:
        """The group of the tenant that has waited longest, cut to what one transaction may hold."""
        tenant, batch = next(iter(self._waiting.items()))
        del self._waiting[tenant]
        if len(batch.asked) > (most := self._members_max):
            self._waiting[tenant] = _Batch(batch.asked[most:], batch.callers[most:])
            batch = _Batch(batch.asked[:most], batch.callers[:most])
        if not self._waiting:
            self._changed.clear()
        self._committing += 1
        return tenant, batch

    async def _commit(self, tenant: TenantId, batch: _Batch[Asked, Made]) -> None:
        try:
            await self._try(tenant, batch)
        except asyncio.CancelledError:
            batch.fail(UnknownOutcome("the node stops; it may have been written"))
            raise
        finally:
            self._committing -= 1
            self._free.release()

    async def _try(self, tenant: TenantId, batch: _Batch[Asked, Made]) -> None:
        try:
            made = await self._work(self._desk, tenant, batch.asked)
        except Refused as error:
            # One of them is at fault; the others must not suffer for it.
            if len(batch.asked) == 1:
                batch.fail(error)
                return
            for asked, caller in zip(batch.asked, batch.callers, strict=True):
                await self._try(tenant, _Batch([asked], [caller]))
        except SchedulerError as error:
            batch.fail(error)
        else:
            self.commits += 1
            batch.tell(made)


def run_group(desk: Desk, *, collect_seconds: float = COLLECT_SECONDS) -> Group[NewRun, RunId]:
    """A group for ad-hoc runs."""
    return Group(desk=desk, check=_check_run, commit=_enqueue, collect_seconds=collect_seconds)


def job_group(desk: Desk, *, collect_seconds: float = COLLECT_SECONDS) -> Group[NewJob, Job]:
    """A group for jobs."""
    return Group(desk=desk, check=_check_job, commit=_create, collect_seconds=collect_seconds)


async def _enqueue(desk: Desk, tenant: TenantId, new: Sequence[NewRun]) -> list[RunId]:
    return [made.id for made in await enqueue_made(desk, tenant, new)]


async def _create(desk: Desk, tenant: TenantId, new: Sequence[NewJob]) -> list[Job]:
    return [made.job for made in await create_made(desk, tenant, new)]


def _check_job(new: NewJob) -> None:
    check_new_job(new)
    if new.dedupe is not None:
        check_dedupe(new.dedupe, of_job=True)


def _check_run(new: NewRun) -> None:
    check_run(new)
    check_payload(new.payload)
    if new.dedupe is not None:
        check_dedupe(new.dedupe, of_job=False)
