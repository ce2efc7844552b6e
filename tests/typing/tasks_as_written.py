"""The public API as users write it; both type checkers must read it as the asserts say.

Lines that must be errors carry an ignore for each checker, and both refuse an ignore that is not
needed: so what is wrong has to stay wrong.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from pydantic import BaseModel

from betimes import (
    App,
    AsyncClient,
    AttemptEnd,
    Cancelled,
    Client,
    Context,
    Middleware,
    PermanentError,
    Retry,
    RunHandle,
    Snooze,
    Task,
    current_context,
)
from betimes.sdk.handle import Ended
from betimes.sdk.prepared import Prepared
from betimes.sdk.schedules import Fire
from betimes.wire.apply import Applied
from betimes.wire.runs import Run

app = App("http://127.0.0.1:8090", "btm_sk_…", name="shop", timeout=10.0)


class Invoice(BaseModel):
    customer_id: int
    amount: str


@dataclass
class Line:
    product: str


@app.task(queue="billing", timeout="2m", retry={"max_attempts": 8, "backoff": "exponential"})
async def send_invoice(ctx: Context, invoice: Invoice, *, copy: bool = False) -> str:
    ctx.log.info("sending", customer=invoice.customer_id)
    ctx.progress(0.5, "half")
    ctx.checkpoint({"sent": True})
    assert_type(ctx.run_id, str)
    assert_type(ctx.attempt, int)
    assert_type(ctx.fence, int)
    assert_type(ctx.scheduled_for, datetime)
    assert_type(ctx.deadline, datetime | None)
    assert_type(ctx.cancelled, bool)
    return ctx.idempotency_key


@app.task
def double(number: int) -> int:
    return 2 * number


@app.task
async def fetch(url: str, lines: list[Line] | None = None) -> bytes:
    return b""


@app.task(
    schedule="0 2 * * *",
    timezone="Europe/Stockholm",
    dst={"gap": "next", "overlap": "first"},
    catchup={"policy": "latest", "window": "6h"},
    overlap="skip",
    jitter="5m",
)
def nightly(ctx: Context) -> None:
    if ctx.cancelled:
        return ctx.stop("cancelled by user")


def tasks_keep_their_types() -> None:
    any_task: Task[..., int, Any] = double
    assert_type(any_task.enqueue(1), RunHandle[int])
    assert_type(double.enqueue(1), RunHandle[int])
    assert_type(double.enqueue(1).wait(timeout=30), Ended[int])
    assert_type(double.enqueue(1).wait().result, int)
    assert_type(double.prepare(1), Prepared[int])
    assert_type(double(1), int)
    assert_type(double.call(1), int)
    assert_type(send_invoice.enqueue(Invoice(customer_id=1, amount="1")), RunHandle[str])
    assert_type(send_invoice.enqueue(Invoice(customer_id=1, amount="1"), copy=True).id, str)
    assert_type(nightly.enqueue(), RunHandle[None])
    assert_type(nightly.next(5), list[Fire])
    assert_type(app.sync_schedules(prune=True), Applied)
    assert_type(app.cancel(dedupe_key="a"), str | None)


def wrong_calls_are_errors() -> None:
    double.enqueue("one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    double.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    double.enqueue(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    later = double.configure(delay="1h")
    later.enqueue("one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    send_invoice.enqueue(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    double.configure(dely="1h")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    double.configure(priority="9")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.cancel()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def the_awaited_half() -> None:
    run = await send_invoice.aenqueue(Invoice(customer_id=1, amount="1"))
    assert_type(run, RunHandle[str])
    assert_type(await fetch("a"), bytes)
    assert_type((await run.awaited(timeout=5)).result, str)
    later = send_invoice.configure(delay=timedelta(days=3), dedupe_key="k", priority=9)
    assert_type(await later.aenqueue(Invoice(customer_id=1, amount="1")), RunHandle[str])
    many = await app.aenqueue_many([double.prepare(1), fetch.prepare("a")])
    assert_type(many, list[RunHandle[Any]])


def options_of_calls() -> None:
    when = datetime(2026, 12, 24, 15, tzinfo=UTC)
    double.configure(at=when).enqueue(1)
    double.configure(at="2026-12-24T15:00", timezone="Europe/Stockholm").enqueue(1)
    double.configure(concurrency={"key": "k", "limit": 2}, tags={"a": "b"}).enqueue(1)


class Timing(Middleware):
    def before_enqueue(self, prepared: Prepared[Any]) -> None:
        prepared.headers["traceparent"] = "00-0-0-00"

    def after_attempt(self, context: Context, end: AttemptEnd) -> None:
        assert_type(end.error, BaseException | None)


def control() -> None:
    raise Retry("busy", after="30s")


def more_control(kind: int) -> None:
    if kind == 1:
        raise Snooze(until=datetime(2026, 1, 1, tzinfo=UTC))
    if kind == 2:
        raise Cancelled("no longer wanted")
    raise PermanentError("card refused")


def plain_objects_are_taken() -> None:
    """What the service takes as an object may be written as one."""
    made = app.jobs.create(
        name="ping-crm",
        schedule="every 15m",
        target={
            "type": "http",
            "method": "POST",
            "url": "https://crm.example/sync",
            "body": {"full": False},
        },
        notify=[{"on": ["run.dead"], "endpoint": "ops"}],
    )
    assert_type(made.id, str)
    app.jobs.create(name="x", target="http")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def clients(client: Client) -> None:
    assert_type(client.runs.get("run_1"), Run)
    for run in client.runs.list(state=["dead"]):
        assert_type(run, Run)
    assert_type(current_context(), Context | None)


async def async_clients(client: AsyncClient) -> None:
    assert_type(await client.runs.get("run_1"), Run)
    async for run in client.runs.list():
        assert_type(run, Run)
