"""The example of a test, as the documentation shows it; only its services are placeholders."""

from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from betimes import App, Context
from betimes.sdk.context import Facts
from betimes.testing import Harness

app = App()
reports: list[Any] = []


class Mailer:
    """A placeholder."""

    async def send(self, invoice: "Invoice", *, idempotency_key: str) -> str:
        return f"sent {invoice.amount} to {invoice.customer_id} as {idempotency_key}"


mailer = Mailer()


def build_report(*, for_day: Any) -> None:
    """A placeholder."""
    reports.append(for_day)


class Invoice(BaseModel):
    customer_id: int
    amount: str


@app.task(queue="billing", timeout="2m", retry={"max_attempts": 8})
async def send_invoice(ctx: Context, invoice: Invoice) -> str:
    ctx.log.info("sending", customer=invoice.customer_id)
    return await mailer.send(invoice, idempotency_key=ctx.idempotency_key)


@app.task(schedule="0 2 * * *", timezone="Europe/Stockholm",
          dst={"gap": "next", "overlap": "first"},
          catchup={"policy": "latest", "window": "6h"}, overlap="skip", jitter="5m")  # fmt: skip
def nightly_report(ctx: Context) -> None:
    build_report(for_day=ctx.scheduled_for.date())


def test_invoice_and_schedule() -> None:
    with Harness(app, now="2026-03-28T00:00Z") as h:  # in-process scheduler, fake clock, no network
        send_invoice.enqueue(Invoice(customer_id=1, amount="1"))
        h.run_until_idle()
        assert h.runs("send_invoice").succeeded == 1
        h.advance("47 hours")  # crosses the DST change
        assert h.fires("nightly_report") == ["2026-03-28T01:00Z", "2026-03-29T01:00Z"]
        with h.failing(send_invoice, times=3):
            ...
        h.crash_worker()
        h.expire_leases()
        h.assert_no_lost_runs()


async def test_a_plain_call() -> None:
    fake_ctx = Context(Facts(run_id="run_1", handler="send_invoice"))
    # plain function call, no machinery; a coroutine function gives a coroutine, as everywhere
    assert await send_invoice.call(fake_ctx, Invoice(customer_id=1, amount="1"))


def test_what_the_placeholders_saw() -> None:
    reports.clear()
    with Harness(app, now="2026-03-28T00:00Z") as h:
        run = send_invoice.enqueue(Invoice(customer_id=7, amount="12.50"))
        assert run.wait(timeout=30).result == f"sent 12.50 to 7 as {run.id}"
        h.advance("47 hours")
    assert [day.day for day in reports] == [28, 29]
    assert SimpleNamespace(app=app).app.tasks.keys() == {"send_invoice", "nightly_report"}
