"""The worker of an app: leases, calls, reports; the same over HTTP and on the database."""

import asyncio
import logging
import threading
import time
from datetime import timedelta
from typing import Any

from api_kit import Served
from betimes import (
    App,
    AsyncClient,
    AttemptEnd,
    Cancelled,
    Context,
    Middleware,
    PermanentError,
    Retry,
    Snooze,
)
from betimes.runtime.logs import ship_logs
from betimes.sdk.options import RetryOptions
from runtime_kit import Way, eventually, working

FAST: RetryOptions = {"max_attempts": 3, "backoff": "fixed", "initial": 0, "jitter": "none"}


async def test_plain_and_async_functions_run_and_their_results_come_back(
    app: App, lines: Way
) -> None:
    @app.task
    def double(number: int) -> int:
        assert threading.current_thread().name == "betimes-handler"
        return 2 * number

    @app.task
    async def greet(ctx: Context, name: str, *, loud: bool = False) -> str:
        await asyncio.sleep(0)
        assert ctx.attempt == 1
        return f"{name}!" if loud else name

    runs = [await double.aenqueue(21), await greet.aenqueue("you", loud=True)]
    async with working(app, lines):
        ended = [await run.awaited(timeout=10) for run in runs]
    assert [one.result for one in ended] == [42, "you!"]


async def test_the_context_tells_what_the_service_knows(app: App, lines: Way) -> None:
    seen: list[Context] = []

    @app.task(timeout="2m", tags={"team": "a"}, queue="mail", priority=7)
    def look(ctx: Context) -> None:
        seen.append(ctx)

    run = await look.aenqueue()
    async with working(app, lines, queues=["mail"]):
        await run.awaited(timeout=10)
    (ctx,) = seen
    assert (ctx.run_id, ctx.idempotency_key, ctx.task) == (run.id, run.id, "look")
    assert (ctx.attempt, ctx.fence, ctx.queue, ctx.priority) == (1, 1, "mail", 7)
    assert (ctx.tags, ctx.job_id, ctx.cancelled) == ({"team": "a"}, None, False)
    assert ctx.deadline is not None
    assert ctx.deadline - ctx.started_at == timedelta(minutes=2)
    assert abs(ctx.started_at - ctx.due_at) < timedelta(seconds=30)
    assert ctx.scheduled_for == ctx.due_at
    assert ctx.traceparent.startswith("00-")


async def test_what_is_raised_decides_what_follows(app: App, lines: Way) -> None:
    """Retry and any other error count; PermanentError is final; Snooze does not count."""
    calls: list[tuple[str, int]] = []

    @app.task(retry=FAST)
    def act(ctx: Context, how: str) -> str:
        calls.append((how, ctx.attempt))
        if how == "give up":
            raise PermanentError("card refused")
        if how == "stop":
            raise Cancelled("not wanted")
        if how == "snooze" and calls.count(("snooze", 1)) == 1:
            raise Snooze(after=0.01)
        if how == "retry" and ctx.attempt == 1:
            raise Retry("busy", after=0.01)
        if how == "break":
            raise RuntimeError("broken")
        return how

    hows = ["fine", "give up", "stop", "snooze", "retry", "break"]
    runs = {how: await act.aenqueue(how) for how in hows}
    async with working(app, lines):
        ended = {how: await run.awaited(timeout=20) for how, run in runs.items()}
    assert {how: one.state for how, one in ended.items()} == {
        "fine": "succeeded",
        "give up": "dead",
        "stop": "cancelled",
        "snooze": "succeeded",
        "retry": "succeeded",
        "break": "dead",
    }
    assert ended["give up"].run.attempt == 1
    assert ended["snooze"].run.attempt == 1
    assert ended["retry"].run.attempt == 2
    assert [number for how, number in calls if how == "break"] == [1, 2, 3]
    error = ended["break"].run.error
    assert error is not None
    assert (error.type, error.message) == ("RuntimeError", "broken")
    assert "in act" in (error.stack or "")


async def test_a_payload_that_does_not_fit_is_dead_at_once(app: App, lines: Way) -> None:
    @app.task
    def charge(cents: int) -> None:
        """Never called."""

    made = await app.async_client.runs.create(handler="charge", payload={"cents": "one"})
    async with working(app, lines):
        run = await eventually(lambda: _final(app, made.id))
    assert (run.state, run.error.type, run.attempt) == ("dead", "InvalidPayload", 1)


async def _final(app: App, run: str) -> Any:
    found = await app.async_client.runs.get(run)
    return found if found.state in {"dead", "succeeded", "cancelled"} else None


async def test_a_payload_that_lies_elsewhere_is_fetched(app: App, lines: Way) -> None:
    """It was handed to tasks as none at all. What is nowhere to be had is dead at once."""

    @app.task
    def add(numbers: list[int], more: int = 0) -> int:
        return sum(numbers) + more

    client = app.async_client
    blob = await client.blobs.create(content=b'{"numbers": [1, 2, 39]}')
    run = await client.runs.create(handler="add", payload_ref=blob.id)
    own = await client.runs.create(handler="add", payload_ref=blob.id, payload={"numbers": [7]})
    far = await client.runs.create(handler="add", payload_ref="s3://bucket/key")
    async with working(app, lines):
        found = [await ended(client, one.id) for one in (run, own, far)]
    assert [one.state for one in found] == ["succeeded", "succeeded", "dead"]
    assert [one.result for one in found[:2]] == [42, 7]
    assert found[2].error is not None
    assert found[2].error.type == "PayloadMissing"


async def ended(client: AsyncClient, run: str) -> Any:
    await client.runs.wait(run, timeout=10)
    return await client.runs.get(run, view="full")


async def test_words_arrive_before_the_end(app: App, lines: Way) -> None:
    """Log lines, also those of the standard library, progress and checkpoints."""

    @app.task(retry=FAST)
    def export(ctx: Context, year: int) -> int:
        start = (ctx.checkpoint_value or {"row": 0})["row"]
        ctx.log.info("begin", year=year, start=start)
        logging.getLogger("library").warning("old %s", "style")
        ctx.progress(0.5, "half")
        ctx.checkpoint({"row": 50})
        if start == 0:
            raise RuntimeError("power cut")
        return int(start)

    ship_logs()
    run = await export.aenqueue(2026)
    async with working(app, lines):
        ended = await run.awaited(timeout=20)
    assert ended.result == 50
    log = await app.async_client.runs.logs(run.id)
    told = [(line.attempt, line.level, line.message) for line in log.items]
    each = [("info", "begin"), ("warning", "old style")]
    assert told == [(attempt, *one) for attempt in (1, 2) for one in each]
    assert log.items[0].fields == {"year": 2026, "start": 0}
    assert ended.run.progress is not None
    assert ended.run.progress["percent"] == 50


async def test_a_cancelled_run_hears_of_it_and_ends_as_cancelled(app: App, lines: Way) -> None:
    begun = threading.Event()

    @app.task
    def dig(ctx: Context) -> None:
        begun.set()
        while not ctx.cancelled:
            time.sleep(0.01)
        return ctx.stop("as wished")

    run = await dig.aenqueue()
    async with working(app, lines):
        await asyncio.to_thread(begun.wait, 10)
        await app.async_client.runs.cancel(run.id)
        ended = await run.awaited(timeout=20)
    assert ended.state == "cancelled"


async def test_time_limits_bite_everywhere(app: App, lines: Way) -> None:
    once: RetryOptions = {"max_attempts": 1}

    @app.task(timeout=0.2, retry=once)
    async def wait_long() -> None:
        await asyncio.sleep(60)

    @app.task(timeout=0.2, retry=once)
    def block_long(ctx: Context) -> None:
        while not ctx.cancelled:
            time.sleep(0.01)
        raise RuntimeError("told to end")

    runs = [await wait_long.aenqueue(), await block_long.aenqueue()]
    async with working(app, lines):
        ended = [await run.awaited(timeout=20) for run in runs]
    for one in ended:
        assert (one.state, one.run.error and one.run.error.type) == ("dead", "TimedOut")
        (attempt,) = [told async for told in app.async_client.runs.attempts(one.run.id)]
        assert attempt.outcome == "timed_out"


class Around(Middleware):
    def __init__(self) -> None:
        self.told: list[str] = []

    def before_attempt(self, context: Context) -> None:
        self.told.append(f"before {context.task}")

    def after_attempt(self, context: Context, end: AttemptEnd) -> None:
        self.told.append(f"after {end.succeeded} {end.result} {type(end.error).__name__}")


async def test_middleware_goes_around_attempts(app: App, lines: Way) -> None:
    @app.task
    def fine() -> int:
        return 1

    @app.task(retry={"max_attempts": 1})
    async def broken() -> None:
        raise KeyError("x")

    around = Around()
    app.middleware.append(around)
    runs = [await fine.aenqueue(), await broken.aenqueue()]
    async with working(app, lines, concurrency=1):
        for run in runs:
            await run.awaited(timeout=10)
    assert set(around.told) == {
        "before fine",
        "after True 1 NoneType",
        "before broken",
        "after False None KeyError",
    }


async def test_draining_finishes_what_it_can_and_gives_back_the_rest(
    app: App, lines: Way, served: Served
) -> None:
    begun = threading.Semaphore(0)

    @app.task
    async def quick() -> str:
        begun.release()
        await asyncio.sleep(0.3)
        return "done"

    @app.task
    async def slow() -> None:
        begun.release()
        await asyncio.sleep(60)

    runs = [await quick.aenqueue(), await slow.aenqueue()]
    async with working(app, lines, grace=timedelta(seconds=2)) as crew:
        for _ in runs:
            await asyncio.to_thread(begun.acquire, timeout=10)
        crew.stopping.request("test")
    first, second = [await app.async_client.runs.get(run.id) for run in runs]
    assert first.state == "succeeded"
    assert (second.state, second.attempt) == ("queued", 0)
    assert second.state_reason is not None
    assert second.state_reason.code == "RELEASED"
    assert [worker async for worker in app.async_client.workers.list()] == []


async def test_the_worker_tells_when_a_run_is_dead(app: App, lines: Way) -> None:
    dead: list[Any] = []
    heard = threading.Event()

    def alert(run: Any) -> None:
        dead.append(run)
        heard.set()

    @app.task(retry={"max_attempts": 1}, on_dead=alert)
    def broken() -> None:
        raise RuntimeError("no")

    run = await broken.aenqueue()
    async with working(app, lines):
        await run.awaited(timeout=10)
        assert await asyncio.to_thread(heard.wait, 10)
    assert [(one.run_id, one.task, one.attempts) for one in dead] == [(run.id, "broken", 1)]


async def test_only_what_it_has_tasks_for_is_leased(app: App, lines: Way) -> None:
    @app.task
    def mine() -> None:
        """Ours."""

    other = await app.async_client.runs.create(handler="somebody_elses")
    run = await mine.aenqueue()
    async with working(app, lines):
        await run.awaited(timeout=10)
    found = await app.async_client.runs.get(other.id)
    assert (found.state, found.attempt) == ("queued", 0) or found.state == "scheduled"
