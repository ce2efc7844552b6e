"""For tests, our users' and our own: never imported by the service.

    from betimes.testing import Harness, assert_enqueued, frozen

`Harness` is loaded when it is first used. Everything else here is ours and may change.
"""

from typing import TYPE_CHECKING

from betimes.testing.clock import ManualClock
from betimes.testing.signal import Signal

if TYPE_CHECKING:
    from betimes.testing.harness import Harness as Harness
    from betimes.testing.harness import HarnessRun as HarnessRun
    from betimes.testing.harness import HarnessWorkflowRun as HarnessWorkflowRun
    from betimes.testing.harness import Runs as Runs
    from betimes.testing.harness import WorkflowRuns as WorkflowRuns
    from betimes.testing.harness import assert_enqueued as assert_enqueued
    from betimes.testing.harness import frozen as frozen

__all__ = [
    "Harness",
    "HarnessRun",
    "HarnessWorkflowRun",
    "ManualClock",
    "Runs",
    "Signal",
    "WorkflowRuns",
    "assert_enqueued",
    "frozen",
]


def __getattr__(name: str) -> object:
    """Load the Harness and its company from where they live."""
    if name not in __all__:
        raise AttributeError(f"module 'betimes.testing' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 -- only when something is asked for

    found: object = getattr(import_module("betimes.testing.harness"), name)
    globals()[name] = found
    return found
