"""`Harness`: what tests of apps are written with."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Self, cast

from betimes.runtime.dead import DeadRun
from betimes.schedule import Skipped, parse
from betimes.sdk.application import App
from betimes.sdk.exchange import Given
from betimes.sdk.operation import Operation
from betimes.sdk.options import run_members
from betimes.sdk.schedules import members_of
from betimes.sdk.task import AnyTask, Task
from betimes.sdk.workflow import AnyWorkflow, Workflow
from betimes.testing.harness.answering import Answering
from betimes.testing.harness.asking import instant, read_run, span, terms_of
from betimes.testing.harness.asserting import Where, matching, open_harnesses
from betimes.testing.harness.client import AsyncHarnessClient, AtOnce, HarnessClient
from betimes.testing.harness.driving import Driver
from betimes.testing.harness.flows import Flows, Which
from betimes.testing.harness.frozen import patient, told
from betimes.testing.harness.job import Job
from betimes.testing.harness.kind import WorkerDies
from betimes.testing.harness.run import HarnessRun, Runs, Terms
from betimes.testing.harness.workflow_run import WorkflowRuns
from betimes.testing.harness.world import World

START = "2026-01-01T00:00Z"
STEPS_MAX = 1_000_000

Length = timedelta | str | float
Named = AnyTask | str
Scheduled = AnyTask | AnyWorkflow | str


@dataclass(slots=True, eq=False)
class _Failing:
    task: str
    left: float
    error: Callable[[], BaseException]


class Harness:
    """Apps without a service: enqueue, let time pass, look.

    Nothing is connected. Schedules begin at `now`; time stands still until a method moves it, and
    handlers take no time unless they `spend` some. Chance comes from `seed`.
    """

    def __init__(
        self,
        *apps: App,
        now: str | datetime = START,
        seed: int = 0,
        schedules: bool = True,
    ) -> None:
        if not apps:
            raise TypeError("expected an app, got none: Harness(app)")
        self._apps = apps
        self._world = World(instant(now), seed)
        self._world.planned_failure = self._planned_failure
        self._world.on_dead = self._on_dead
        self._schedules = schedules
        self._tasks: dict[str, AnyTask] = {
            task.name: task for app in apps for task in app.tasks.values()
        }
        self._failing: list[_Failing] = []
        self._flows = Flows(
            self._world,
            self._tasks,
            {one.name: one for app in apps for one in app.workflows.values()},
        )
        self._answering = Answering(self._world, self._tasks, self._flows)
        self._stack = ExitStack()
        self._driver = Driver()

    # --- opening and closing ---

    def __enter__(self) -> Self:
        self._stack.enter_context(told(lambda: self._world.now))
        self._stack.enter_context(patient(self._wait, self._await))
        for app in self._apps:
            self._stack.enter_context(self._joined(app))
        open_harnesses.append(self)
        self._stack.callback(open_harnesses.remove, self)
        if self._schedules:
            known: list[AnyTask | AnyWorkflow] = [*self._tasks.values()]
            for one in (*known, *self._flows.workflows.values()):
                if one.options.get("schedule"):
                    self._world.plan(self._job(one))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._driver.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *told_of: object) -> None:
        self.__exit__(*told_of)

    @contextmanager
    def _joined(self, app: App) -> Iterator[None]:
        """The app speaks to us instead of to a service."""
        names = ("client", "async_client", "tx")
        before = {name: app.__dict__[name] for name in names if name in app.__dict__}
        app.__dict__["client"] = HarnessClient(self._perform)
        app.__dict__["async_client"] = AsyncHarnessClient(self._aperform)
        app.__dict__["tx"] = lambda *_args, **_options: AtOnce(app)
        try:
            yield
        finally:
            for name in names:
                app.__dict__.pop(name, None)
            app.__dict__.update(before)

    def _job(self, task: AnyTask | AnyWorkflow) -> Job:
        schedule = parse(members_of(task), now=self._world.now, seed=task.name)
        if isinstance(task, Workflow):
            named = cast("AnyTask", task)
            return Job(named, schedule, Terms(), self._world.now, starts_workflow=True)
        terms = terms_of(read_run({"handler": task.name, **run_members(dict(task.options))}))
        return Job(task, schedule, terms, self._world.now)

    # --- time ---

    @property
    def now(self) -> datetime:
        """The time it is."""
        return self._world.now

    def run_until_idle(self) -> Runs:
        """Run what is due, and jump over the pauses of retries and snoozes until they are over.

        What is to begin later waits for `advance`. Gives back what has ended on the way.
        """
        return self._driver.drive(self._until_idle())

    async def arun_until_idle(self) -> Runs:
        """The same in an async test: handlers run on its loop."""
        return await self._driver.adrive(self._until_idle())

    def advance(self, by: Length) -> Runs:
        """Let time pass, and everything happen that happens meanwhile."""
        return self._driver.drive(self._until(self.now + span(by)))

    async def aadvance(self, by: Length) -> Runs:
        """The same in an async test."""
        return await self._driver.adrive(self._until(self.now + span(by)))

    def travel(self, to: str | datetime) -> Runs:
        """Let time pass until a moment."""
        return self._driver.drive(self._until(self._later(to)))

    async def atravel(self, to: str | datetime) -> Runs:
        """The same in an async test."""
        return await self._driver.adrive(self._until(self._later(to)))

    def outage(self, length: Length) -> None:
        """Let time pass while the service is away; then its catch-up rules decide about fires."""
        self._world.be_away(self.now + span(length))

    def spend(self, length: Length) -> None:
        """Called by a handler: say that it takes this long, by the clock of the Harness."""
        if not self._world.in_handler:
            raise RuntimeError("expected `spend` inside a handler; a test says `advance`")
        self._world.spent += span(length)

    def _later(self, to: str | datetime) -> datetime:
        moment = instant(to)
        if moment < self.now:
            raise ValueError(f"expected a time not before {self.now}, got {moment}")
        return moment

    def _until(self, moment: datetime) -> Generator[Any, Any, Runs]:
        return self._collecting(self._world.drive(moment))

    def _until_idle(self) -> Generator[Any, Any, Runs]:
        def drive() -> Generator[Any, Any, None]:
            for _ in range(STEPS_MAX):
                at = self._world.next_at(begun_only=True)
                if at is None:
                    return
                yield from self._world.drive(max(at, self.now))
            raise RuntimeError("expected an end, runs are tried again and again without one")

        return self._collecting(drive())

    def _collecting(self, drive: Generator[Any, Any, None]) -> Generator[Any, Any, Runs]:
        if self._world.in_handler:
            raise RuntimeError("expected a handler to leave time alone; it may say `spend`")
        before = len(self._world.ended)
        yield from drive
        return Runs(sorted(self._world.ended[before:], key=_number))

    # --- what goes wrong ---

    @contextmanager
    def failing(
        self,
        task: Named,
        times: int | None = None,
        error: BaseException | type[BaseException] | None = None,
    ) -> Iterator[None]:
        """Let attempts of a task fail instead of running: the next `times`, or all of them."""
        cause = error or RuntimeError("planned by the test")
        failing = _Failing(
            self._named(task),
            float("inf") if times is None else times,
            (lambda: cause()) if isinstance(cause, type) else (lambda: cause),  # noqa: PLW0108 -- each its own
        )
        self._failing.append(failing)
        try:
            yield
        finally:
            self._failing.remove(failing)

    @contextmanager
    def crashing(self, task: Named, times: int | None = None) -> Iterator[None]:
        """Let attempts of a task take their worker with them, as poison does."""
        with self.failing(task, times, WorkerDies):
            yield

    def crash_worker(self, when: Literal["before", "after"] = "after") -> None:
        """Let the worker die with everything that is due or running now.

        `after` the handlers have done their work and before it could report, or `before` they
        began. The runs are held until `expire_leases`, or until half a minute has passed.
        """
        self._world.lose_running()
        self._world.crashing = when
        try:
            self._driver.drive(self._until(self.now))
        finally:
            self._world.crashing = None

    def expire_leases(self) -> Runs:
        """Let time pass until what dead workers held is free again, and run it."""
        held = [run.held_until for run in self._world.held if run.held_until is not None]
        return self._driver.drive(self._until(max(held, default=self.now)))

    def _planned_failure(self, run: HarnessRun) -> BaseException | None:
        for one in self._failing:
            if one.task == run.name and one.left > 0:
                one.left -= 1
                return one.error()
        return None

    def _on_dead(self, run: HarnessRun) -> None:
        hook = run.task.options.get("on_dead")
        dead = DeadRun(run.id, run.name, run.attempt)
        if isinstance(hook, Task):
            hook.configure(idempotency_key=f"{run.id}-dead").enqueue(dead)
        elif hook is not None:
            hook(dead)

    # --- what workflows wait for ---

    def approve(self, which: Which, node: str) -> None:
        """Open the gate of a node; it starts when time is let go.

        `which` is a workflow run (or its id), or a workflow (or its name) of which one run waits.
        """
        self._flows.approve(self._flows.meant(which, node), node)

    def signal(self, which: Which, node: str, data: Any = None) -> None:
        """Send a node the signal it waits for; `data` is what `w.signal` stands for."""
        self._flows.signal(self._flows.meant(which, node), node, data)

    # --- what there is to see ---

    def runs(self, task: Named | None = None) -> Runs:
        """All runs, or those of one task, in the order in which they came to be."""
        if task is None:
            return Runs(self._world.runs)
        name = self._named(task)
        return Runs(run for run in self._world.runs if run.name == name)

    def enqueued(self, task: Named | None = None, where: Where | None = None) -> Runs:
        """What was enqueued, as opposed to what a schedule or a workflow has begun."""
        asked = (run for run in self.runs(task) if run.fire_at is None and run.place is None)
        return matching(Runs(asked), where)

    def fires(self, task: Scheduled) -> list[str]:
        """When the schedule of a task or workflow has fired, in UTC: `2026-03-28T01:00Z`."""
        return [_text(moment) for moment in self.fire_times(task)]

    def fire_times(self, task: Scheduled) -> list[datetime]:
        """The same as instants."""
        return list(self._job_of(task).fires)

    def missed(self, task: Scheduled) -> list[Skipped]:
        """Fires that an outage took away and catch-up did not want, with the reason."""
        return list(self._job_of(task).missed)

    def workflow_runs(self, workflow: AnyWorkflow | str | None = None) -> WorkflowRuns:
        """All runs of workflows, or those of one, in the order in which they came to be."""
        return self._flows.of(workflow)

    def assert_enqueued(
        self, task: Named, where: Where | None = None, *, times: int | None = None
    ) -> Runs:
        """Fail unless a task was enqueued: with these arguments, so many times."""
        found = self.enqueued(task, where)
        if (times is None and not found) or (times is not None and len(found) != times):
            wanted = "at least one run" if times is None else f"{times} runs"
            meant = f" where {where}" if where is not None else ""
            raise AssertionError(
                f"expected {wanted} of {self._named(task)!r}{meant}, got {len(found)} "
                f"of {[(run, run.sent) for run in self.enqueued()]}"
            )
        return found

    def assert_not_enqueued(self, task: Named, where: Where | None = None) -> None:
        """Fail if a task was enqueued."""
        self.assert_enqueued(task, where, times=0)

    def assert_no_lost_runs(self) -> None:
        """Run until idle; fail unless all that was due has ended and no fire is missing."""
        self.run_until_idle()
        stuck = [run for run in self._world.runs if not run.is_final and run.due_at <= self.now]
        if stuck:
            raise AssertionError(f"expected every due run to end, these did not: {stuck}")
        for job in self._world.jobs.values():
            if job.schedule.is_fixed_delay or job.paused:
                continue
            counted = len(job.fires) + sum(gap.count for gap in job.missed)
            due = job.schedule.count(job.since, self.now)
            if counted != due:
                raise AssertionError(
                    f"expected {due} fires of {job.task.name!r} to be accounted for, got {counted}"
                )

    def _job_of(self, task: Scheduled) -> Job:
        name = task if isinstance(task, str) else task.name
        if name not in self._flows.workflows:
            self._named(name)
        if name not in self._world.jobs:
            raise KeyError(f"{name!r} has no schedule here")
        return self._world.jobs[name]

    def _named(self, task: Named) -> str:
        name = task if isinstance(task, str) else task.name
        if name not in self._tasks:
            raise KeyError(f"there is no task {name!r} here, only {', '.join(sorted(self._tasks))}")
        return name

    # --- what the app asks of its client ---

    def _wait(self, _seconds: float) -> None:
        """Nobody sleeps here: whoever would lets happen what can."""
        if not self._world.in_handler:
            self.run_until_idle()

    async def _await(self, _seconds: float) -> None:
        if not self._world.in_handler:
            await self.arun_until_idle()

    def _perform(self, operation: Operation, given: Given) -> Any:
        if self._answering.waits(operation) and not self._world.in_handler:
            self.run_until_idle()
        return self._answering.answer(operation, given)

    async def _aperform(self, operation: Operation, given: Given) -> Any:
        if self._answering.waits(operation) and not self._world.in_handler:
            await self.arun_until_idle()
        return self._answering.answer(operation, given)


def _number(run: HarnessRun) -> int:
    return run.number


def _text(moment: datetime) -> str:
    plain = moment.second == 0 and moment.microsecond == 0
    return (
        moment.strftime("%Y-%m-%dT%H:%MZ") if plain else moment.isoformat().replace("+00:00", "Z")
    )
