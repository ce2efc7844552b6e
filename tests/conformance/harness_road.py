"""The road in memory: a Harness, which has one worker that is always there."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from betimes import App, Context
from betimes.domain.failure import fingerprint
from betimes.sdk.client import AsyncClient
from betimes.sdk.errors import InvalidState
from betimes.sdk.exchange import Given
from betimes.sdk.operations import RUNS_CREATE
from betimes.testing import Harness, HarnessRun
from conformance.roads import Began, Bodies, Body, Hand, Letter, Seen


class HarnessHand:
    """The worker of a Harness: it works when time passes, however little."""

    silent = frozen = False

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    async def work(self) -> None:
        await self._harness.aadvance(0)

    async def take(self) -> None:
        await self.work()

    async def report(self) -> None:
        await self.work()

    async def beat(self) -> None:
        raise NotImplementedError

    async def go(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        self._harness.crash_worker()

    @contextmanager
    def reply_lost(self) -> Iterator[None]:
        raise NotImplementedError
        yield

    @property
    def idle(self) -> bool:
        return not any(run.running for run in self._harness.runs())


class HarnessRoad:
    """A Harness as a road."""

    name = "harness"

    def __init__(self, app: App) -> None:
        self._app = app
        self._opened: Harness | None = None
        self._bodies = Bodies(lambda: self._harness.now)

    @property
    def _harness(self) -> Harness:
        """Opened when it is first needed: by then every task is known."""
        if self._opened is None:
            self._opened = Harness(self._app).__enter__()
            self._begun_at = self._opened.now
        return self._opened

    @property
    def _client(self) -> AsyncClient:
        """As the app has it while its Harness is open."""
        assert self._harness is self._opened
        return self._app.async_client

    def close(self) -> None:
        if self._opened is not None:
            self._opened.__exit__()

    @property
    def began(self) -> list[Began]:
        return self._bodies.began

    @property
    def most_at_once(self) -> int:
        return self._bodies.most_at_once

    def task(self, name: str, body: Body, **options: Any) -> None:
        noted = self._bodies.noted(body)

        async def run(ctx: Context, given: Any = None) -> Any:
            return await noted(ctx, given)

        self._app.task(name=name, **options)(run)

    async def spend(self, seconds: float) -> None:
        self._harness.spend(seconds)
        running = sum(run.running for run in self._harness.runs())
        self._bodies.most_at_once = max(self._bodies.most_at_once, running)

    async def enqueue(self, name: str, given: Any = None, **options: Any) -> str:
        body = {"handler": name, "payload": {"given": given}, **options}
        # Not `runs.create`: the Harness cannot read what that leaves unset.
        made = await self._client.perform(RUNS_CREATE, Given(body=body))
        found: str = made.id
        return found

    async def enqueue_together(self, name: str, *several: Mapping[str, Any]) -> list[str]:
        return [await self.enqueue(name, **options) for options in several]

    async def cancel(self, run: str) -> bool:
        try:
            await self._client.runs.cancel(run)
        except InvalidState:
            return False
        return True

    async def advance(self, seconds: float) -> None:
        await self._harness.aadvance(seconds)

    async def live(self, seconds: float) -> None:
        await self._harness.aadvance(seconds)

    async def hire(self, *, knows: Sequence[str] | None = None) -> Hand:
        assert knows is None
        return HarnessHand(self._harness)

    async def expire(self, run: str) -> None:
        raise NotImplementedError

    async def limit(self, queue: str, **settings: Any) -> None:
        raise NotImplementedError

    async def keep(self, content: bytes) -> str:
        raise NotImplementedError

    async def kept(self, reference: str) -> bytes:
        raise NotImplementedError

    async def look(self, run: str) -> Seen:
        found = self._find(run)
        return Seen(
            state=found.state.value,
            attempt=found.attempt,
            reason=found.reason or None,
            result=found.result,
            error=None if found.error is None else (found.error.type, found.error.message),
            percent=None if found.progress is None else found.progress[0],
        )

    async def fires(self, name: str) -> dict[int, str]:
        return {
            int((run.fire_at - self._begun_at).total_seconds()): run.state.value
            for run in self._harness.runs(name)
            if run.fire_at is not None
        }

    async def letters(self) -> list[Letter]:
        return [
            Letter(run.id, run.attempt, run.reason, fingerprint(run.error))
            for run in self._harness.runs()
            if run.state.value == "dead"
        ]

    async def events(self, run: str) -> list[str]:
        raise NotImplementedError

    async def at_rest(self) -> bool:
        return all(run.is_final for run in self._harness.runs())

    def _find(self, run: str) -> HarnessRun:
        (found,) = [one for one in self._harness.runs() if one.id == run]
        return found
