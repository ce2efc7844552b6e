"""Clients: they ask, ask again when they do not know, and remember what they were told.

A request carries an idempotency key, as those of our libraries do, and is repeated with it until
there is an answer: one that lay around somewhere does nothing when it arrives after a later wish.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from betimes.domain.errors import SchedulerError, Unavailable
from betimes.domain.ids import JobId, RunId
from betimes.domain.job import Definition
from betimes.domain.retry import Backoff, Jitter, RetryPolicy
from betimes.domain.run import NewRun
from betimes.domain.spec import retry_to_json
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_runs
from betimes.ops.gap import Missed
from betimes.ops.idempotency import IdempotencyKey, fingerprint_of, once, shard_of_idempotency
from betimes.ops.manual import run_now
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.runs import cancel_run
from betimes.ops.update import update_job
from betimes.schedule import parse
from betimes.store.idempotency import Answer
from simulation.history import Asked
from simulation.plan import Act, JobPlan

if TYPE_CHECKING:
    from simulation.world import World

PAUSE_SECONDS = 0.7


class Client:
    """Everybody who uses the service in one seed."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._jobs: dict[int, UUID] = {}
        self._definitions: dict[int, Definition] = {}

    async def live(self) -> None:
        """Create the jobs, then ask for everything that was planned."""
        plan = self._world.plan
        async with asyncio.TaskGroup() as group:
            for number, job in enumerate(plan.jobs):
                group.create_task(self._create(number, job))
            for place in range(len(plan.jobs)):
                mine = [act for act in plan.acts if act.job == place]
                group.create_task(self._act_all(mine))

    async def _create(self, number: int, job: JobPlan) -> None:
        world = self._world
        await world.sleep(job.created)
        definition = self._definition(job)
        asked = Asked("create", world.domain.now(), key=f"create-{number}", detail=str(number))

        async def verb(desk: Desk) -> UUID:
            shard = shard_of_idempotency(desk, world.tenant, asked.key)
            made = await create_job(desk, world.tenant, NewJob(definition=definition), shard=shard)
            return made.id

        await self._ask(asked, self._guarded(asked.key, verb))
        if not asked.ok:
            return  # its one time had passed when it came
        asked.job = self._jobs[number] = UUID(asked.answer)
        self._definitions[number] = definition

    def _definition(self, job: JobPlan) -> Definition:
        began = self._world.domain.began
        common: dict[str, Any] = {"timezone": "UTC", "overlap": job.overlap}
        common["catchup"] = {"policy": job.catchup}
        match job.kind:
            case "interval":
                when = {"type": "interval", "every": f"PT{job.every}S"}
                when["anchor"] = "1970-01-01T00:00:00Z"
            case "cron":
                when = {"type": "cron", "expr": f"*/{job.every} * * * * *"}
            case _:
                at = (began + timedelta(seconds=job.every)).replace(microsecond=0)
                when = {"type": "once", "at": at.isoformat()}
        retry = RetryPolicy(
            max_attempts=job.attempts,
            backoff=Backoff.FIXED,
            initial=timedelta(seconds=1),
            jitter=Jitter.FULL,
        )
        return Definition(
            schedule=parse({**when, **common}).to_dict(),
            handler=job.handler,
            payload=json.dumps({"takes": job.takes, "fails": job.fails}).encode(),
            options={"retry": retry_to_json(retry)},
        )

    async def _act_all(self, acts: list[Act]) -> None:
        """One job's acts come one after the other, as one person asks."""
        for act in acts:
            await self._world.sleep(max(0.0, act.at - self._world.loop.time()))
            if act.job in self._jobs:
                await self._act(act)

    async def _act(self, act: Act) -> None:
        world, job = self._world, JobId(self._jobs[act.job])
        asked = Asked(act.verb, world.domain.now(), job=job, detail=act.detail)
        tenant, plan = world.tenant, world.plan.jobs[act.job]
        match act.verb:
            case "enqueue" | "enqueue_later":
                asked.job, asked.key = None, f"run-{act.at:.6f}"
                asked.detail = str(act.job)
                delay = timedelta(seconds=act.number if act.verb == "enqueue_later" else 0)
                body = json.dumps({"takes": plan.takes, "fails": 0.0}).encode()
                new = NewRun(handler=plan.handler, payload=body, delay=delay)

                async def verb(desk: Desk) -> UUID:
                    shard = shard_of_idempotency(desk, tenant, asked.key)
                    (run,) = await enqueue_runs(desk, tenant, [new], shard=shard)
                    return run

                await self._ask(asked, self._guarded(asked.key, verb))
            case "run_now":
                asked.key = f"now-{act.at:.6f}"
                await self._ask(
                    asked, self._guarded(asked.key, lambda desk: run_now(desk, tenant, job))
                )
            case "pause":

                async def pause(desk: Desk) -> UUID:
                    return (await pause_job(desk, tenant, job)).id

                await self._ask(asked, self._guarded(f"pause-{act.at:.6f}", pause))
            case "resume":

                async def resume(desk: Desk) -> UUID:
                    missed = Missed(act.detail)
                    return (await resume_job(desk, tenant, job, missed=missed)).job.id

                await self._ask(asked, self._guarded(f"resume-{act.at:.6f}", resume))
            case "edit":
                changed = replace(self._definitions[act.job], priority=int(act.number) % 10)
                await self._ask(asked, lambda desk: update_job(desk, tenant, job, changed))
            case "cancel":
                found = self._some_run(job)
                if found is not None:
                    asked.detail = str(found)

                    async def cancel(desk: Desk) -> UUID:
                        await cancel_run(desk, tenant, RunId(found))
                        return found

                    await self._ask(asked, self._guarded(f"cancel-{act.at:.6f}", cancel))
            case _:
                raise AssertionError(act.verb)

    def _some_run(self, job: UUID) -> UUID | None:
        """The newest run of a job that has begun: what somebody would see in a list."""
        for one in reversed(self._world.history.executed):
            if one.job == job:
                return one.run
        return None

    def _guarded(
        self, key: str, verb: Callable[[Desk], Awaitable[UUID]]
    ) -> Callable[[Desk], Awaitable[Any]]:
        tenant = self._world.tenant
        guard = IdempotencyKey(key=key, fingerprint=fingerprint_of(key))

        async def ask(desk: Desk) -> str:
            done = await once(
                desk, tenant, guard, verb, lambda made: Answer(status=201, body=str(made).encode())
            )
            return (done.answer.body or b"").decode()

        return ask

    async def _ask(self, asked: Asked, verb: Callable[[Desk], Awaitable[Any]]) -> None:
        """Until there is an answer, whatever it is."""
        world = self._world
        world.asked(asked)
        while True:
            api = world.some_api()
            if api is None:
                await world.sleep(PAUSE_SECONDS)
                continue
            try:
                assert api.desk is not None
                asked.answer = await api.call(partial(verb, api.desk))
                asked.ok = True
            except Unavailable:
                await world.sleep(PAUSE_SECONDS)
                continue
            except SchedulerError as refusal:
                asked.refused = f"{type(refusal).__name__}: {refusal}"
            break
        asked.ended = world.domain.now()
        world.note("asked", asked.verb, asked.job, asked.ok, asked.refused)
