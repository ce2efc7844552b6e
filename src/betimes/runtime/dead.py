"""What an app wants to happen when a run of a task is out of attempts."""

import asyncio
from dataclasses import dataclass

from betimes.sdk.task import AnyTask, Task
from betimes.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class DeadRun:
    """A run that will not be tried again, as `on_dead` is told of it."""

    run_id: str
    task: str
    attempts: int


def tell_dead(task: AnyTask | None, dead: DeadRun, telemetry: Telemetry) -> None:
    """Call `on_dead`, in a thread of its own; what it raises is told and harms nobody.

    Called by the worker that reported the last failure. A run whose worker died with it has nobody
    to call: for what must never be missed there are notifications of the service.
    """
    hook = None if task is None else task.options.get("on_dead")
    if hook is None:
        return

    def work() -> None:
        try:
            if isinstance(hook, Task):
                key = f"{dead.run_id}-dead"
                hook.configure(idempotency_key=key).enqueue(dead)
            else:
                hook(dead)
        except Exception as error:  # noqa: BLE001 -- somebody else's code
            telemetry.event("worker.hook_failed", level="error", run=dead.run_id, error=error)

    _ = asyncio.get_running_loop().run_in_executor(None, work)
