"""Runs attempts: on the loop, in threads, in processes; each ends in one report."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.errors import FencedOut, LeaseOver, NotFound, Unavailable
from betimes.domain.outcome import Outcome
from betimes.executing.processes import Processes
from betimes.executing.threads import LEASE_OVER, Threads
from betimes.runtime.attempt import Attempt, Attempts, Stop
from betimes.runtime.calling import invoke, invoke_async
from betimes.runtime.child import order_of
from betimes.runtime.courier import Courier
from betimes.runtime.ending import told
from betimes.runtime.line import NOTHING, Grant
from betimes.runtime.outcomes import unfetched
from betimes.runtime.places import Places
from betimes.runtime.saying import Saying
from betimes.schedule.duration import read_duration
from betimes.sdk.context import Context, Facts
from betimes.sdk.task import AnyTask
from betimes.wire.workers import ReportOne

Report = Callable[[Attempt, ReportOne], None]
Fetch = Callable[[Grant], Awaitable[bytes]]
"""The payload that a grant refers to."""


class Executor:
    """Begins attempts and hands their ends to the reporter."""

    def __init__(
        self,
        *,
        places: Places,
        courier: Courier,
        report: Report,
        fetch: Fetch,
        group: asyncio.TaskGroup,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        lost: Callable[[Attempt], None],
        processes: int,
    ) -> None:
        self._places = places
        self._courier = courier
        self._report = report
        self._fetch = fetch
        self._group = group
        self._now = now
        self._monotonic = monotonic
        self._lost = lost
        self._threads = Threads(places.total, freed=places.release)
        self._processes = Processes(processes)
        self.attempts = Attempts(loop=asyncio.get_running_loop(), give_up=self._give_up)

    def start(self, grant: Grant, task: AnyTask, *, trusted_until: float) -> Attempt:
        """Begin; a place is reserved for it and is given back when it ends."""
        saying = Saying(grant.lease_id, now=self._now, wake=self._courier.wake)
        limit = _limit(grant)
        facts = facts_of(grant, task.name, self._now(), limit)
        attempt = Attempt(
            grant,
            task,
            Context(facts, saying),
            saying,
            monotonic=self._monotonic,
            trusted_until=trusted_until,
        )
        attempt.limit = limit
        self.attempts.add(attempt)
        attempt.handle = self._group.create_task(
            self._run(attempt, task), name=f"attempt {task.name}"
        )
        return attempt

    def hold(self, grant: Grant) -> Attempt:
        """A run that is not begun and has to be given back; its lease is kept until then."""
        saying = Saying(grant.lease_id, now=self._now, wake=self._courier.wake)
        context = Context(facts_of(grant, grant.handler or "", self._now(), None), saying)
        attempt = Attempt(
            grant, None, context, saying, monotonic=self._monotonic, trusted_until=float("inf")
        )
        attempt.ended = True
        self.attempts.add(attempt)
        return attempt

    def close(self) -> None:
        """End threads and processes that wait for work."""
        self._threads.close()
        self._processes.close()

    async def _run(self, attempt: Attempt, task: AnyTask) -> None:
        me = asyncio.current_task()
        try:
            end: ReportOne | None = await self._called(attempt, task)
        except FencedOut:
            # It has looked at its lease before it began; nobody needs to hear more of it.
            self._lost(attempt)
            attempt.stop = Stop.LOST
            end = None
        except asyncio.CancelledError:
            if attempt.stop is None:
                raise  # not one of our causes: the worker itself is being ended
            while me is not None and me.cancelling():
                me.uncancel()
            end = None
        finally:
            if not attempt.lingers:
                self._places.release(1)
        await self._courier.last_words(attempt.saying)
        stopped = attempt.end_of_stop()
        if attempt.stop is Stop.LOST:
            self._end(attempt, None)
        elif end is None or (stopped is not None and end.action != "complete"):
            self._end(attempt, stopped)
        else:
            self._end(attempt, end)

    async def _called(self, attempt: Attempt, task: AnyTask) -> Any:
        """With its payload, which may lie elsewhere; one of the run's own wins."""
        grant = attempt.grant
        payload = bytes(grant.payload)
        if grant.payload_ref is not None and payload == bytes(NOTHING):
            try:
                payload = await self._fetch(grant)
            except (NotFound, Unavailable) as error:
                return told(grant.lease_id, unfetched(error))
        return await self._call(attempt, task, payload)

    async def _call(self, attempt: Attempt, task: AnyTask, payload: bytes) -> ReportOne:
        if not attempt.is_held():
            raise LeaseOver(LEASE_OVER)
        if task.is_async:
            outcome = await invoke_async(task, attempt.context, payload)
        elif task.options.get("pool") == "process":
            outcome = await self._in_process(attempt, task, payload)
        else:
            outcome = await self._in_thread(attempt, task, payload)
        return told(attempt.lease, outcome)

    async def _in_thread(self, attempt: Attempt, task: AnyTask, payload: bytes) -> Any:
        def work(one: Attempt) -> Outcome | None:
            return invoke(task, one.context, payload)

        return await self._threads.run(work, attempt)

    async def _in_process(self, attempt: Attempt, task: AnyTask, payload: bytes) -> Any:
        def begun(say: Callable[[object], None]) -> None:
            attempt.say = say

        order = order_of(task, attempt.context.facts, payload)
        return await self._processes.run(
            order, is_held=attempt.is_held, hear=attempt.saying.hear, begun=begun
        )

    def _give_up(self, attempt: Attempt) -> None:
        """The grace is over: report without waiting for it to end."""
        self._end(attempt, attempt.end_of_stop())

    def _end(self, attempt: Attempt, end: ReportOne | None) -> None:
        if attempt.ended:
            return
        attempt.ended = True
        self.attempts.silence(attempt)
        if end is None:
            self.attempts.remove(attempt)
        else:
            self._report(attempt, end)


def _limit(grant: Grant) -> timedelta | None:
    if grant.timeout is None:
        return None
    return timedelta(microseconds=read_duration(grant.timeout).elapsed())


def facts_of(grant: Grant, name: str, now: datetime, limit: timedelta | None) -> Facts:
    """What a handler is told about its attempt."""
    return Facts(
        run_id=grant.run_id,
        handler=name,
        attempt=grant.attempt,
        max_attempts=grant.max_attempts,
        fence=grant.fence,
        queue=grant.queue,
        priority=grant.priority,
        job_id=grant.job_id,
        due_at=grant.due_at,
        scheduled_for=grant.scheduled_for,
        started_at=now,
        timeout=limit,
        idempotency_key=grant.idempotency_key,
        traceparent=grant.traceparent,
        checkpoint=grant.checkpoint,
        tags=grant.tags,
    )
