"""The clients: they ask for work while everything breaks, and note what they were promised.

Each request that changes something is repeated under one idempotency key until its fate is known,
as a careful client does. Only what was acknowledged is expected of the service.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from blackbox.api import Answer, Unclear
from blackbox.cluster import TASK_KINDS, Cluster
from blackbox.facts import Job, Pause, Single, id_of

RETRY = {"max_attempts": 60, "backoff": "fixed", "initial": "1s", "jitter": "none"}
PERIODS = (3, 4, 5, 6, 7, 8)
REFUSED_SECONDS = 0.5
KNOWN_WITHIN_SECONDS = 400.0
FAN_OUT = 12


class Refused(Exception):
    """An answer that no repetition will change."""


@dataclass
class Load:
    """What was asked for and what was promised."""

    cluster: Cluster
    dice: random.Random
    jobs: list[Job] = field(default_factory=list)
    singles: list[Single] = field(default_factory=list)
    cancelled: dict[UUID, float] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)
    workflow_runs: dict[UUID, int] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    tries: int = 0
    unclear: int = 0
    busy_answers: int = 0
    refusals: list[str] = field(default_factory=list)
    steps: int = 0
    """How often the database's clock was stepped; a window that spans a step says nothing."""
    relived_until: float = 0.0
    """Up to here the database's clock has been before: fires may have run the first time."""
    _numbers: int = 0
    _asking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(24))

    def now(self) -> float:
        """The database's clock, as far as it is known from outside."""
        return time.time() + self.cluster.postgres.offset

    async def until_known(self, method: str, path: str, body: Any = None) -> Answer:
        """Repeat one request until it is known what became of it.

        Raises:
            Refused: the service said no, for good.
            Unclear: nobody knows, after minutes of asking.

        """
        self._numbers += 1
        key = f"chaos-{self._numbers}"
        deadline = time.monotonic() + KNOWN_WITHIN_SECONDS
        while True:
            api = self.dice.choice(self.cluster.apis())
            self.tries += 1
            try:
                async with self._asking:
                    answer = await api.ask(method, path, body, idempotency_key=key)
            except Unclear:
                self.unclear += 1
            else:
                if answer.ok:
                    if isinstance(answer.body, dict) and "id" in answer.body:
                        self.keys.setdefault(key, set()).add(answer.body["id"])
                    return answer
                if answer.status not in (409, 425, 429) and answer.status < 500:
                    raise Refused(f"{method} {path}: {answer.status} {answer.body}")
                if answer.status == 409 and "idempot" not in str(answer.body):
                    raise Refused(f"{method} {path}: {answer.status} {answer.body}")
                self.busy_answers += 1
            if time.monotonic() > deadline:
                self.unanswered.append(f"{method} {path} ({key})")
                raise Unclear(path)
            await asyncio.sleep(REFUSED_SECONDS * (0.5 + self.dice.random()))

    async def create_jobs(self, number: int) -> None:
        """Recurring jobs of all kinds."""
        async with asyncio.TaskGroup() as group:
            for index in range(number):
                group.create_task(self._create_job(index))

    async def _create_job(self, index: int) -> None:
        period = PERIODS[index % len(PERIODS)]
        phase = index % period
        # Little of it fails: retries have a budget of a tenth of an origin's requests.
        kind = ("http", "sdk", "direct", "http", "sdk", "http", "direct", "faulty")[index % 8]
        catchup = ("all", "latest", "none")[index % 3]
        overlap = ("allow", "allow", "skip")[(index // 5) % 3]
        schedule = {
            "type": "interval",
            "every": f"PT{period}S",
            "anchor": f"1970-01-01T00:00:0{phase}Z",
            "timezone": "UTC",
            "overlap": overlap,
            "catchup": {"policy": catchup, "window": "PT6H", "max": 1000},
        }
        body = {
            "name": f"job-{index}",
            "schedule": schedule,
            **self._work(kind, flaky=index % 25 == 9),
        }
        invoked = self.now()
        answer = await self.until_known("POST", "/v1/jobs", body)
        made = Job(
            id_of(answer.body["id"]), period, phase, invoked, self.now(), kind, catchup, overlap
        )
        self.jobs.append(made)

    def _work(self, kind: str, *, flaky: bool = False) -> dict[str, Any]:
        """A target or a task."""
        if kind in TASK_KINDS:
            handler = "flaky" if flaky else "steady"
            return {
                "handler": handler,
                "queue": kind,
                "payload": {},
                "retry": RETRY,
                "timeout": "30s",
            }
        port = self.cluster.faulty_port if kind == "faulty" else self.cluster.healthy_port
        path = "flaky" if flaky else "ok"
        target = {"type": "http", "url": f"http://127.0.0.1:{port}/{path}", "timeout": "10s"}
        return {"target": target, "retry": RETRY}

    def run(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Every client that goes on while things break."""
        forever: list[tuple[Callable[[], Awaitable[None]], float]] = [
            (self._enqueue, 0.25),
            (self._enqueue_later, 0.8),
            (self._one_off_job, 1.0),
            (self._pause_and_resume, 1.0),
            (self._edit, 1.5),
            (self._cancel, 1.5),
            (self._approve, 5.0),
            (self._start_workflow, 4.0),
        ]
        return [group.create_task(self._keep(act, every)) for act, every in forever]

    async def _keep(self, act: Callable[[], Awaitable[None]], every: float) -> None:
        """Do it again and again; acts overlap when the service is slow, up to a bound."""
        under_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                await asyncio.sleep(every * (0.5 + self.dice.random()))
                if len(under_way) < 40:
                    task = asyncio.create_task(self._excused(act))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)
        except asyncio.CancelledError:
            # What was asked for is asked for until its fate is known.
            if under_way:
                await asyncio.wait(under_way)
            raise

    async def _excused(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except Refused as refusal:
            self.refusals.append(str(refusal))
        except Unclear:
            pass  # noted already

    async def _enqueue(self) -> None:
        kind = self.dice.choice(("http", "http", "http", "sdk", "direct", "faulty"))
        answer = await self.until_known("POST", "/v1/runs", self._work(kind))
        self.singles.append(Single(id_of(answer.body["id"]), None, self.now(), self.now()))

    async def _enqueue_later(self) -> None:
        delay = self.dice.randint(1, 40)
        kind = self.dice.choice(("http", "sdk", "direct"))
        body = {**self._work(kind, flaky=self.dice.random() < 0.05), "delay": f"PT{delay}S"}
        answer = await self.until_known("POST", "/v1/runs", body)
        self.singles.append(Single(id_of(answer.body["id"]), None, self.now(), self.now() + delay))

    async def _one_off_job(self) -> None:
        delay = self.dice.randint(2, 60)
        body = {"schedule": {"type": "delay", "after": f"PT{delay}S"}, **self._work("http")}
        answer = await self.until_known("POST", "/v1/jobs", body)
        due = self.now() + delay
        self.singles.append(Single(None, id_of(answer.body["id"]), self.now(), due))

    async def _pause_and_resume(self) -> None:
        job = self.dice.choice(self.jobs)
        if job.pauses and job.pauses[-1].resumed is None:
            return
        steps, relived = self.steps, self.now() < self.relived_until
        # It is clear when all of it is known, and no clock was set meanwhile.
        pause = Pause(self.now(), unclear=True)
        job.pauses.append(pause)
        name = f"/v1/jobs/{_text(job.id)}"
        try:
            await self.until_known("POST", f"{name}/pause", {})
            pause.acknowledged = self.now()
            await asyncio.sleep(self.dice.uniform(2, 25))
        finally:
            pause.resume_invoked = self.now()
            await self.until_known("POST", f"{name}/resume", {})
            pause.resumed = self.now()
            pause.unclear = relived or self.steps != steps

    async def _edit(self) -> None:
        job = self.dice.choice(self.jobs)
        if job.kind in TASK_KINDS:
            body: dict[str, Any] = {"payload": {"seconds": self.dice.choice((0.0, 0.1))}}
        else:
            body = {"payload": {"edited": self.dice.randint(0, 9)}}
        await self.until_known("PATCH", f"/v1/jobs/{_text(job.id)}", body)

    async def _cancel(self) -> None:
        body = {**self._work("http"), "delay": "PT4S"}
        answer = await self.until_known("POST", "/v1/runs", body)
        run = id_of(answer.body["id"])
        self.singles.append(Single(run, None, self.now(), self.now() + 4))
        await asyncio.sleep(self.dice.uniform(0.0, 5.0))
        await self.until_known("POST", f"/v1/runs/{answer.body['id']}/cancel", {})
        self.cancelled[run] = time.time()

    async def _approve(self) -> None:
        answer = await self.until_known("GET", "/v1/catchups?limit=50")
        for episode in answer.body.get("items", answer.body.get("data", [])):
            if episode["state"] == "waiting":
                await self.until_known("POST", f"/v1/catchups/{episode['id']}/approve", {})

    async def create_workflow(self) -> None:
        """A fan-out of siblings between a first and a last node."""
        siblings = {f"part{n}": {**self._node(n), "needs": ["first"]} for n in range(FAN_OUT)}
        nodes = {
            "first": self._node(0),
            **siblings,
            "last": {**self._node(1), "needs": list(siblings)},
        }
        await self.until_known("PUT", "/v1/workflows/fan", {"nodes": nodes})

    def _node(self, number: int) -> dict[str, Any]:
        return self._work(("http", "sdk", "http", "direct")[number % 4])

    async def _start_workflow(self) -> None:
        answer = await self.until_known("POST", "/v1/workflows/fan/runs", {"input": {}})
        self.workflow_runs[id_of(answer.body["id"])] = FAN_OUT + 2


def _text(job: UUID) -> str:
    """A job's public id."""
    symbols = "0123456789abcdefghjkmnpqrstvwxyz"
    return "job_" + "".join(symbols[job.int >> shift & 31] for shift in range(125, -1, -5))
