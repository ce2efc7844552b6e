"""Operations of the service as the Harness answers them: those that apps call."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from betimes.domain.errors import Invalid
from betimes.sdk import operations as known
from betimes.sdk.exchange import Given
from betimes.sdk.operation import Operation
from betimes.sdk.task import AnyTask
from betimes.testing.harness.answering_workflows import workflow_answers
from betimes.testing.harness.asking import due_of, read_run, terms_of
from betimes.testing.harness.client import missing, over, shown_made, shown_many, shown_run
from betimes.testing.harness.flows import Flows
from betimes.testing.harness.run import HarnessRun
from betimes.testing.harness.world import World
from betimes.wire.apply import Applied
from betimes.wire.runs import Run, RunMade, RunsMade


class Answering:
    """Answers calls of clients from a world."""

    def __init__(self, world: World, tasks: Mapping[str, AnyTask], flows: Flows) -> None:
        self._world = world
        self._tasks = tasks
        self._repeated: dict[str, HarnessRun] = {}
        self._answers: dict[str, Callable[[Given], Any]] = {
            known.RUNS_CREATE.name: self._create,
            known.RUNS_CREATE_MANY.name: self._create_many,
            known.RUNS_GET.name: self._get,
            known.RUNS_WAIT.name: self._get,
            known.RUNS_CANCEL.name: self._cancel,
            known.RUNS_CANCEL_BY_KEY.name: self._cancel_by_key,
            known.JOBS_APPLY.name: self._apply,
            **workflow_answers(flows),
        }

    def waits(self, operation: Operation) -> bool:
        """Whether it waits for the end of a run."""
        return operation is known.RUNS_WAIT

    def answer(self, operation: Operation, given: Given) -> Any:
        """What the service would say."""
        answer = self._answers.get(operation.name)
        if answer is None:
            raise NotImplementedError(
                f"a Harness does not answer {operation.name}; the fixture betimes_server does"
            )
        return answer(given)

    def _create(self, given: Given) -> RunMade:
        return self._ask(given.body, given.idempotency_key)

    def _create_many(self, given: Given) -> RunsMade:
        return shown_many([self._ask(item, None) for item in given.body["items"]])

    def _ask(self, body: Mapping[str, Any], key: str | None) -> RunMade:
        if key is not None and key in self._repeated:
            return shown_made(self._repeated[key], deduplicated=False)
        asked = read_run(body)
        task = self._tasks.get(asked.handler or "")
        if task is None:
            raise Invalid(f"expected a task of an app of this Harness, got {asked.handler!r}")
        terms = terms_of(asked)
        payload = None if asked.payload is None else msgspec.json.encode(asked.payload)
        run, stands = self._world.ask(task, payload, terms, due_of(asked, terms, self._world.now))
        if key is not None:
            self._repeated[key] = run
        return shown_made(run, deduplicated=stands)

    def _get(self, given: Given) -> Run:
        return shown_run(self._find(given))

    def _cancel(self, given: Given) -> Run:
        run = self._find(given)
        if run.is_final:
            raise over(run)
        self._world.cancel(run)
        return shown_run(run)

    def _cancel_by_key(self, given: Given) -> Run:
        key = given.body["dedupe_key"]
        for run in reversed(self._world.runs):
            dedupe = run.terms.dedupe
            if dedupe is not None and dedupe.key == key and not run.is_final:
                self._world.cancel(run)
                return shown_run(run)
        raise missing(f"no active run has the dedupe key {key!r}")

    def _find(self, given: Given) -> HarnessRun:
        wanted = given.path["run"]
        for run in reversed(self._world.runs):
            if run.id == wanted:
                return run
        raise missing(f"there is no run {wanted!r}")

    def _apply(self, given: Given) -> Applied:
        """Schedules of decorators are taken up when the Harness opens; nothing is left to do."""
        names = [job["name"] for job in given.body["jobs"]]
        dry = bool(given.body.get("dry_run"))
        return Applied(created=[], updated=[], unchanged=names, deleted=[], diff=[], dry_run=dry)
