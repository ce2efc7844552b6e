"""Asserting by the Harness that is open."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from betimes.testing.harness.run import HarnessRun, Runs

if TYPE_CHECKING:
    from betimes.sdk.task import AnyTask
    from betimes.testing.harness.harness import Harness

Where = Mapping[str, Any] | Callable[[HarnessRun], bool]

open_harnesses: "list[Harness]" = []


def assert_enqueued(
    task: "AnyTask | str", where: Where | None = None, *, times: int | None = None
) -> Runs:
    """The same as `harness.assert_enqueued`, of the Harness that was opened last."""
    if not open_harnesses:
        raise RuntimeError("expected an open Harness: with Harness(app) as h: …")
    return open_harnesses[-1].assert_enqueued(task, where, times=times)


def matching(runs: Runs, where: Where | None) -> Runs:
    """Those that a test means: by some of their arguments, or by anything about them."""
    if where is None:
        return runs
    if isinstance(where, Mapping):
        return Runs(run for run in runs if _has(run, where))
    return Runs(run for run in runs if where(run))


def _has(run: HarnessRun, wanted: Mapping[str, Any]) -> bool:
    """As the handler gets it, or as it travels: a model equals what it was made of."""
    arguments, sent = run.arguments, run.sent
    return all(
        (name in arguments and arguments[name] == value) or (name in sent and sent[name] == value)
        for name, value in wanted.items()
    )
