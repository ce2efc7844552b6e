"""A run in the hands of whoever enqueued it."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from betimes.sdk.failures import ClientError

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.sdk.task import Task
    from betimes.wire.runs import Run, RunMade

R_co = TypeVar("R_co", covariant=True)

FINAL = frozenset({"succeeded", "dead", "cancelled", "skipped", "expired", "missed"})
POLL_SECONDS = 25.0
SLACK_SECONDS = 10.0


class RunFailed(ClientError):
    """The run ended without a result; `run` is what the service knows about it."""

    def __init__(self, run: "Run") -> None:
        told = f": {run.error.type}: {run.error.message}" if run.error is not None else ""
        super().__init__(f"expected {run.id} to succeed, it is {run.state}{told}")
        self.run = run


class Ended(Generic[R_co]):
    """A run that is over."""

    def __init__(self, run: "Run", task: "Task[Any, R_co, Any]") -> None:
        self.run = run
        self._task = task

    def __repr__(self) -> str:
        return f"Ended({self.run.id!r}, task={self._task.name!r}, state={self.run.state!r})"

    @property
    def id(self) -> str:
        """The run."""
        return self.run.id

    @property
    def state(self) -> str:
        """How it ended: `succeeded`, `dead`, `cancelled` and so on."""
        return self.run.state

    @property
    def succeeded(self) -> bool:
        """Whether there is a result."""
        return self.run.state == "succeeded"

    @property
    def result(self) -> R_co:
        """What the handler returned; raises `RunFailed` when it did not get that far."""
        if not self.succeeded:
            raise RunFailed(self.run)
        value = self.run.result
        data = b"null" if value is msgspec.UNSET else msgspec.json.encode(value)
        found: R_co = self._task.arguments.result(data)
        return found


class RunHandle(Generic[R_co]):
    """What `enqueue` gives back."""

    def __init__(self, app: "App", task: "Task[Any, R_co, Any]", made: "RunMade | Run") -> None:
        self._app = app
        self._task = task
        self.id = made.id
        self.deduplicated = made.deduplicated
        """Whether this is an earlier run with the same dedupe key."""

    def __repr__(self) -> str:
        return f"RunHandle({self.id!r}, task={self._task.name!r})"

    def wait(self, timeout: float = 60.0) -> Ended[R_co]:
        """Block until it is over.

        Raises:
            TimeoutError: it is not over after `timeout` seconds; it goes on.

        """
        client, left = self._app.client, Patience(timeout)
        while True:
            asked = left.next()
            run = client.runs.wait(self.id, timeout=asked, request_timeout=asked + SLACK_SECONDS)
            if run.state in FINAL:
                return Ended(client.runs.get(self.id, view="full"), self._task)
            left.check(self.id, run.state)

    async def awaited(self, timeout: float = 60.0) -> Ended[R_co]:  # noqa: ASYNC109 -- as in `wait`
        """The same as `wait`, awaited."""
        client, left = self._app.async_client, Patience(timeout)
        while True:
            asked = left.next()
            run = await client.runs.wait(
                self.id, timeout=asked, request_timeout=asked + SLACK_SECONDS
            )
            if run.state in FINAL:
                return Ended(await client.runs.get(self.id, view="full"), self._task)
            left.check(self.id, run.state)

    def fetch(self) -> "Run":
        """What the service knows about it now."""
        return self._app.client.runs.get(self.id)

    def cancel(self, reason: str = "") -> None:
        """End it, or ask for its end if it is running."""
        self._app.client.runs.cancel(self.id, reason=reason)


class Patience:
    """Splits a wait into requests that each stay under the service's longest poll."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._left = seconds

    def next(self) -> float:
        """How long the next request may wait."""
        return min(POLL_SECONDS, self._left)

    def check(self, run: str, state: str) -> None:
        """Count one request; raises when there is no patience left."""
        self._left -= self.next()
        if self._left <= 0:
            raise TimeoutError(f"{run} is still {state} after {self._seconds:g} s")
