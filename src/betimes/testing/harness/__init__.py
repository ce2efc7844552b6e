"""A scheduler in the test's own process: the real schedules and retries, a clock that jumps."""

from betimes.testing.harness.asserting import assert_enqueued
from betimes.testing.harness.frozen import frozen
from betimes.testing.harness.harness import Harness
from betimes.testing.harness.run import HarnessRun, Runs
from betimes.testing.harness.workflow_run import HarnessWorkflowRun, WorkflowRuns

__all__ = [
    "Harness",
    "HarnessRun",
    "HarnessWorkflowRun",
    "Runs",
    "WorkflowRuns",
    "assert_enqueued",
    "frozen",
]
