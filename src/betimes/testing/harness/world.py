"""The line of the service in memory: fires become runs, runs become attempts, one event at a time.

Every decision is made by the functions the service itself uses: `schedule` says when, `verdict`
what becomes of a run before and after an attempt, `fairness` what of overlaps and of dedupe keys,
`workflow` what is next in a graph. What stands here is only the order of events and a clock that
jumps from one to the next.

Long because everything that happens to a run happens to the same few collections, in one order.
"""

import heapq
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from betimes.domain.outcome import Abandoned, Outcome, Succeeded, facts_of
from betimes.domain.states import RunState, Trigger
from betimes.domain.verdict import (
    CANCELLED,
    EXHAUSTED,
    FULL,
    has_no_attempt_left,
    refusal,
    verdict_of,
)
from betimes.fairness.dedupe import DedupeAnswer, Holder
from betimes.fairness.dedupe import answer as dedupe_answer
from betimes.fairness.overlap import Unended, Verdict, policy_of
from betimes.fairness.overlap import answer as overlap_answer
from betimes.sdk.task import AnyTask
from betimes.testing.harness.attempt import attempt, attempt_async, limited
from betimes.testing.harness.fires import Fires
from betimes.testing.harness.job import Job
from betimes.testing.harness.keys import Keys
from betimes.testing.harness.kind import Kind, WorkerDies
from betimes.testing.harness.run import HarnessRun, Place, Terms

LEASE = timedelta(seconds=30)
NO_TIME = timedelta(0)
DEDUPED = "DEDUPED"

Driving = Generator[Any, Any, None]


class World:
    """Runs, jobs, a clock, and what is going to happen."""

    def __init__(self, now: datetime, seed: int) -> None:
        self.now = now
        self.runs: list[HarnessRun] = []
        self.ended: list[HarnessRun] = []
        self.jobs: dict[str, Job] = {}
        self.planned_failure: Callable[[HarnessRun], BaseException | None] = lambda _: None
        self.on_dead: Callable[[HarnessRun], None] = lambda _: None
        self.on_node_end: Callable[[HarnessRun], None] = lambda _: None
        self.on_carrier: Callable[[HarnessRun], None] = lambda _: None
        self.spent = NO_TIME
        self.in_handler = False
        self.crashing: str | None = None
        self._dice = Random(seed)  # noqa: S311 -- jitter is no secret
        self._events: list[tuple[datetime, int, int, int, Any]] = []
        self._order = count()
        self._numbers = count(1)
        self._keys: dict[str, tuple[HarnessRun, timedelta | None]] = {}
        self._in_flight = Keys()
        self._outcomes: dict[HarnessRun, Outcome] = {}
        self._fires = Fires(self._fired, lambda at, what: self._push(at, Kind.FIRE, what))

    # --- what comes in ---

    def ask(
        self, task: AnyTask, payload: bytes | None, terms: Terms, due_at: datetime
    ) -> tuple[HarnessRun, bool]:
        """A run, or the one that has its dedupe key; whether it is that one."""
        dedupe = terms.dedupe
        known = None if dedupe is None else self._keys.get(dedupe.key)
        if dedupe is not None and known is not None:
            run, window = known
            holder = Holder(run.created_at, not run.is_final, run.fence > 0)
            verdict = dedupe_answer(dedupe.form, holder, window, self.now)
            if verdict is DedupeAnswer.REUSE:
                return run, True
            if verdict is DedupeAnswer.REPLACE:
                self._finish(run, RunState.SKIPPED, DEDUPED)
        fresh = self._make(task, payload, terms, due_at)
        if dedupe is not None:
            self._keys[dedupe.key] = (fresh, dedupe.window)
        return fresh, False

    def _make(
        self,
        task: AnyTask,
        payload: bytes | None,
        terms: Terms,
        due_at: datetime,
        fire_at: datetime | None = None,
        *,
        job: Job | None = None,
        place: Place | None = None,
        carries: bool = False,
    ) -> HarnessRun:
        run = HarnessRun(
            number=next(self._numbers),
            task=task,
            payload=payload,
            created_at=self.now,
            due_at=due_at,
            terms=terms,
            trigger=Trigger.API if fire_at is None else Trigger.SCHEDULE,
            fire_at=fire_at,
            job=job,
            stored=RunState.QUEUED if due_at <= self.now else RunState.SCHEDULED,
            place=place,
            carries=carries,
        )
        if place is not None:
            run.trigger = Trigger.WORKFLOW
        if not carries:
            self.runs.append(run)
        self._push(due_at, Kind.DUE, run, priority=terms.priority)
        return run

    def _fired(self, job: Job, due_at: datetime, fire_at: datetime) -> HarnessRun:
        return self._make(
            job.task,
            None,
            job.terms,
            due_at,
            fire_at=fire_at,
            job=job,
            carries=job.starts_workflow,
        )

    def begin(self, task: AnyTask, payload: bytes | None, terms: Terms, place: Place) -> HarnessRun:
        """The run of a node of a workflow, due now."""
        return self._make(task, payload, terms, self.now, place=place)

    def end_carrier(self, run: HarnessRun, state: RunState, reason: str) -> None:
        """The workflow run that a fire began is over."""
        if not run.is_final:
            self._finish(run, state, reason)

    def cancel(self, run: HarnessRun) -> None:
        """What waits ends at once; what runs is told, and ends when it ends."""
        if run.is_final:
            return
        run.cancel_wanted = True
        if not run.running and run.held_until is None:
            self._finish(run, *CANCELLED)

    def plan(self, job: Job) -> None:
        """Take a schedule up; its fires begin after now."""
        self.jobs[job.task.name] = job
        self._fires.plan(job, self.now)

    def then(self, at: datetime, kind: Kind, what: Callable[[], None]) -> None:
        """Let something of a workflow happen at a moment."""
        self._push(at, kind, what)

    def _push(self, at: datetime, kind: Kind, what: Any, *, priority: int = 0) -> None:
        place = (max(at, self.now), int(kind), -priority, next(self._order), what)
        heapq.heappush(self._events, place)

    # --- what happens ---

    def next_at(self, *, begun_only: bool) -> datetime | None:
        """When something happens next; of what waits, only what has begun if so asked."""
        events = self._events
        while events and isinstance(run := events[0][4], HarnessRun) and run.is_final:
            heapq.heappop(events)
        if not begun_only:
            return events[0][0] if events else None
        return min(
            (
                at
                for at, kind, _, _, what in events
                if kind <= Kind.TURN
                or (kind == Kind.DUE and not what.is_final and (what.fence > 0 or at <= self.now))
            ),
            default=None,
        )

    def drive(self, until: datetime) -> Driving:
        """Let everything happen up to a moment, in order; the clock stops there."""
        events = self._events
        while events and events[0][0] <= until:
            at, kind, _, _, what = heapq.heappop(events)
            if kind == Kind.DUE:
                if what.is_final:
                    continue
                self.now = max(self.now, at)
                starting = self._due(what)
                if starting is not None:
                    yield from starting
                continue
            self.now = max(self.now, at)
            if kind == Kind.FIRE:
                self._fires.fire(*what)
            elif kind == Kind.END:
                self._ended(what)
            elif kind == Kind.EXPIRE:
                self._expire(what)
            else:
                what()
        self.now = max(self.now, until)

    def _due(self, run: HarnessRun) -> Driving | None:
        """Begin a run if it may; what is left of an async one is for the caller to drive."""
        if run.running or run.held_until is not None:
            return None
        if (deadline := run.terms.start_deadline) is not None or run.cancel_wanted:
            why = refusal(
                asked_to_end=run.cancel_wanted,
                due_at=run.due_at,
                deadline=deadline,
                times_leased=run.fence + 1,
                trigger=run.trigger,
                now=self.now,
            )
            if why is not None:
                self._finish(run, *why)
                return None
        if run.stored is RunState.SCHEDULED:
            run.stored = RunState.QUEUED
        if self._passes_overlap(run) and self._passes_key(run):
            return self._start(run)
        return None

    def _passes_overlap(self, run: HarnessRun) -> bool:
        job = run.job
        if job is None or run.fence:
            return True
        if not job.begun and not job.waiting:
            return True
        policy = policy_of(job.schedule.overlap, fixed_delay=job.schedule.is_fixed_delay)
        told = overlap_answer(policy, Unended(len(job.begun), len(job.waiting)))
        if told.drop_waiting:
            for one in list(job.waiting):
                self._finish(one, RunState.SKIPPED, "OVERLAP_SKIPPED")
        if told.cancel_running:
            for one in list(job.begun):
                self._end_now(one)
        if told.verdict is Verdict.SKIP:
            self._finish(run, RunState.SKIPPED, told.reason)
            return False
        if told.verdict is Verdict.WAIT and job.begun:
            run.reason = told.reason
            job.waiting.append(run)
            return False
        return True

    def _passes_key(self, run: HarnessRun) -> bool:
        if run.terms.gate is None or not self._in_flight.is_full(run):
            return True
        if run.terms.skips_when_full:
            self._finish(run, *FULL)
        else:
            self._in_flight.wait(run)
        return False

    def _start(self, run: HarnessRun) -> Driving | None:
        run.attempt += 1
        run.fence += 1
        run.started_at = now = self.now
        run.first_started_at = run.first_started_at or now
        run.running, run.reason = True, ""
        self._enter(run)
        if run.carries:
            self.on_carrier(run)
            return None
        planned = self.planned_failure(run)
        if self.crashing == "before" or isinstance(planned, WorkerDies):
            self._lose(run)
            return None
        self.spent, self.in_handler = NO_TIME, True
        if run.task.is_async:
            return self._await(run, planned)
        try:
            outcome = attempt(run, now, planned)
        finally:
            self.in_handler = False
        self._came_to(run, outcome)
        return None

    def _await(self, run: HarnessRun, planned: BaseException | None) -> Driving:
        try:
            outcome = yield from attempt_async(run, self.now, planned)
        finally:
            self.in_handler = False
        self._came_to(run, outcome)

    def _came_to(self, run: HarnessRun, outcome: Outcome) -> None:
        outcome, spent = limited(outcome, self.spent, run.terms.timeout)
        if self.crashing == "after":
            self._lose(run)
        elif spent:
            self._outcomes[run] = outcome
            self._push(self.now + spent, Kind.END, run)
        else:
            self._settle(run, outcome)

    def _ended(self, run: HarnessRun) -> None:
        outcome = self._outcomes.pop(run, None)
        if outcome is not None and run.running:
            self._settle(run, outcome)

    def _settle(self, run: HarnessRun, outcome: Outcome) -> None:
        run.running = False
        if isinstance(outcome, Succeeded):
            run.result_data, run.error = outcome.result, None
        else:
            run.error = facts_of(outcome) or run.error
        self._leave_key(run)
        verdict = verdict_of(
            outcome,
            attempt=run.attempt,
            used=run.attempt - 1,
            first_started_at=run.first_started_at or self.now,
            retry=run.terms.retry,
            now=self.now,
            roll=self._dice.random(),
        )
        if run.cancel_wanted:
            verdict = verdict.given_up()
        run.attempt = verdict.attempt
        if verdict.again_at is None:
            self._finish(run, verdict.state, verdict.reason)
        else:
            run.stored, run.reason = verdict.state, verdict.reason
            self._push(verdict.again_at, Kind.DUE, run, priority=run.terms.priority)

    def _finish(self, run: HarnessRun, state: RunState, reason: str) -> None:
        run.stored, run.reason, run.running = state, reason, False
        run.finished_at, run.held_until = self.now, None
        if not run.carries:
            self.ended.append(run)
        self._leave_key(run)
        job = run.job
        if job is not None:
            self._account(job, run)
        if run.place is not None:
            self.on_node_end(run)
        if run.carries:
            self.on_carrier(run)
        if state is RunState.DEAD:
            self.on_dead(run)

    def _account(self, job: Job, run: HarnessRun) -> None:
        """What the end of a scheduled run means to its job."""
        if run in job.waiting:
            job.waiting.remove(run)
        if run in job.begun:
            job.begun.remove(run)
            if job.waiting:
                # Whoever waited behind it may come now.
                self._push(self.now, Kind.DUE, job.waiting.popleft())
        if run.stored is RunState.DEAD:
            job.failures += 1
        elif run.stored is RunState.SUCCEEDED:
            job.failures = 0
        most = job.schedule.common.pause_after_failures
        job.paused = job.paused or (most is not None and job.failures >= most)
        if job.schedule.is_fixed_delay:
            self._fires.next(job, self.now, last_end=self.now)

    def _enter(self, run: HarnessRun) -> None:
        self._in_flight.enter(run)
        if run.job is not None and run not in run.job.begun:
            run.job.begun.append(run)

    def _leave_key(self, run: HarnessRun) -> None:
        if run.terms.gate is not None and (freed := self._in_flight.leave(run)) is not None:
            self._push(self.now, Kind.DUE, freed)

    def _end_now(self, run: HarnessRun) -> None:
        """Somebody else wants its place: it ends as cancelled."""
        self._outcomes.pop(run, None)
        self._finish(run, RunState.CANCELLED, "OVERLAP_CANCELLED")

    # --- workers that die, services that are away ---

    def lose_running(self) -> None:
        """The worker dies with everything it is doing."""
        for run in [one for one in self.runs if one.running]:
            self._lose(run)

    def _lose(self, run: HarnessRun) -> None:
        self._outcomes.pop(run, None)
        run.running = False
        run.held_until = self.now + LEASE
        self._push(run.held_until, Kind.EXPIRE, run)

    def _expire(self, run: HarnessRun) -> None:
        """Its lease is over: the run is visible again, and the attempt counts."""
        if run.held_until is None or run.is_final:
            return
        run.held_until = None
        run.error = facts_of(Abandoned(run.fence))
        self._leave_key(run)
        if run.cancel_wanted:
            self._finish(run, *CANCELLED)
        elif has_no_attempt_left(run.attempt, run.terms.retry):
            self._finish(run, *EXHAUSTED)
        else:
            run.stored = RunState.QUEUED
            self._push(self.now, Kind.DUE, run, priority=run.terms.priority)

    @property
    def held(self) -> list[HarnessRun]:
        """Runs whose worker died and whose lease is not over."""
        return [run for run in self.runs if run.held_until is not None]

    def be_away(self, until: datetime) -> None:
        """The service is down: nothing happens, and afterwards catch-up decides about fires."""
        before, self.now = self.now, until
        gone = [entry for entry in self._events if entry[1] == Kind.FIRE]
        self._events = [entry for entry in self._events if entry[1] != Kind.FIRE]
        heapq.heapify(self._events)
        for _, _, _, _, (job, _instant, _nominal) in gone:
            self._fires.catch_up(job, before, until)
