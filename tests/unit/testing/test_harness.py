"""The Harness: real schedules and retries, a clock that jumps, nothing connected."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from betimes import App, Cancelled, Context, Middleware, PermanentError, Retry, RunFailed, Snooze
from betimes.domain.errors import Invalid
from betimes.testing import Harness, assert_enqueued, frozen


class Invoice(BaseModel):
    customer_id: int
    amount: str


def an_app() -> App:
    return App(name="test")


def test_a_call_is_run_and_its_result_comes_back() -> None:
    app = an_app()

    @app.task(queue="mail", tags={"team": "billing"})
    def double(ctx: Context, number: int) -> int:
        ctx.log.info("doubling", number=number)
        ctx.progress(0.5, "half")
        return 2 * number

    with Harness(app) as h:
        handle = double.enqueue(21)
        assert h.runs().waiting == 1
        assert handle.wait(timeout=30).result == 42
        (run,) = h.runs("double")
    assert (run.state, run.attempt, run.result, run.queue) == ("succeeded", 1, 42, "mail")
    assert (run.log[0].message, run.log[0].fields) == ("doubling", {"number": 21})
    assert run.progress == (50.0, "half")
    assert run.tags == {"team": "billing"}


def test_a_month_of_every_minute_passes_in_a_moment_and_none_is_missing() -> None:
    app = an_app()
    seen: list[datetime] = []

    @app.task(schedule="* * * * *", timezone="America/New_York")
    def tick(ctx: Context) -> None:
        seen.append(ctx.scheduled_for)

    with Harness(app, now="2026-03-01T05:00Z") as h:
        h.travel("2026-04-01T04:00Z")
        h.assert_no_lost_runs()
        assert h.runs(tick).succeeded == len(seen) == 31 * 24 * 60 - 60
    assert seen[0] == datetime(2026, 3, 1, 5, 1, tzinfo=UTC)
    assert {b - a for a, b in itertools.pairwise(seen)} == {timedelta(minutes=1)}


@pytest.mark.parametrize(
    ("dst", "fires"),
    [
        ({"gap": "next"}, ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ({"gap": "skip"}, ["2026-03-28T01:30Z", "2026-03-30T00:30Z"]),
        ({"gap": "shift"}, ["2026-03-28T01:30Z", "2026-03-29T01:30Z", "2026-03-30T00:30Z"]),
    ],
)
def test_clocks_jump(dst: Any, fires: list[str]) -> None:
    app = an_app()

    @app.task(schedule="30 2 * * *", timezone="Europe/Stockholm", dst=dst)
    def nightly() -> None: ...

    with Harness(app, now="2026-03-28T00:00Z") as h:
        h.advance("3 days")
        assert h.fires(nightly) == fires


def test_retries_pause_as_the_policy_says() -> None:
    app = an_app()
    tried: list[datetime] = []

    @app.task(retry={"max_attempts": 4, "backoff": "list", "delays": ["1s", "1m", "1h"],
                     "jitter": "none"})  # fmt: skip
    def flaky(ctx: Context) -> None:
        tried.append(ctx.started_at)
        raise ValueError("no")

    with Harness(app) as h:
        flaky.enqueue()
        h.run_until_idle()
        (run,) = h.runs()
        pauses = [b - a for a, b in itertools.pairwise(tried)]
        assert pauses == [timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)]
        assert (run.state, run.reason, run.attempt) == ("dead", "RETRIES_EXHAUSTED", 4)
        assert run.error is not None
        assert (run.error.type, run.error.message) == ("ValueError", "no")


def test_what_a_handler_raises_decides() -> None:
    app = an_app()
    seen: list[int] = []

    @app.task(retry={"max_attempts": 5, "initial": "1s", "jitter": "none"})
    def control(ctx: Context, what: str) -> str:
        seen.append(ctx.attempt)
        if what == "never":
            raise PermanentError("card refused")
        if what == "stop":
            ctx.stop("enough")
        if what == "cancelled":
            raise Cancelled("by me")
        if len(seen) == 1 and what == "snooze":
            raise Snooze(after="1h")
        if len(seen) == 1 and what == "wait":
            raise Retry(after="10m")
        return what

    for what, state, attempts, hours in [
        ("never", "dead", [1], 0),
        ("stop", "cancelled", [1], 0),
        ("cancelled", "cancelled", [1], 0),
        ("snooze", "succeeded", [1, 1], 1),
        ("wait", "succeeded", [1, 2], 0),
    ]:
        seen.clear()
        with Harness(app) as h:
            start = h.now
            handle = control.enqueue(what)
            h.run_until_idle()
            assert (h.runs()[0].state, seen, (h.now - start) // timedelta(hours=1)) == (
                state,
                attempts,
                hours,
            )
            if state == "dead":
                with pytest.raises(RunFailed, match="card refused"):
                    _ = handle.wait().result


def test_failures_are_injected() -> None:
    app = an_app()
    done: list[int] = []

    @app.task(retry={"max_attempts": 4})
    def work(number: int) -> None:
        done.append(number)

    with Harness(app) as h:
        with h.failing(work, times=3, error=ConnectionError):
            work.enqueue(1)
            h.run_until_idle()
        assert (h.runs()[0].attempt, done) == (4, [1])
        with h.failing("work"):
            work.enqueue(2)
            h.run_until_idle()
        assert (h.runs().dead, done) == (1, [1])


def test_what_is_later_waits_for_its_time() -> None:
    app = an_app()

    @app.task
    def remind(user: int) -> None: ...

    with Harness(app, now="2026-12-01T00:00Z") as h:
        remind.configure(delay="3 days", dedupe_key="trial-7", priority=9).enqueue(7)
        second = remind.configure(delay="3 days", dedupe_key="trial-7").enqueue(7)
        remind.configure(at="2026-12-24T15:00", timezone="Europe/Stockholm").enqueue(8)
        assert second.deduplicated
        h.run_until_idle()
        assert (h.runs().succeeded, h.runs().count("scheduled")) == (0, 2)
        assert app.cancel(dedupe_key="trial-7") == second.id
        assert app.cancel(dedupe_key="trial-7") is None
        h.travel("2026-12-24T13:59Z")
        assert h.runs().succeeded == 0
        (ended,) = h.advance("1m")
        assert (ended.arguments, h.runs().cancelled) == ({"user": 8}, 1)


def test_debounce_replaces_and_an_idempotency_key_repeats() -> None:
    app = an_app()

    @app.task
    def index(page: str) -> None: ...

    with Harness(app) as h:
        quiet = index.configure(dedupe={"key": "i", "form": "debounce", "window": "1m"})
        quiet.enqueue("a")
        h.advance("30s")
        quiet.enqueue("b")
        h.advance("59s")
        assert (h.runs().skipped, h.runs().succeeded) == (1, 0)
        h.advance("1s")
        assert h.runs()[1].state == "succeeded"
        once = index.configure(idempotency_key="k")
        assert once.enqueue("c").id == once.enqueue("c").id


def test_a_model_is_asserted_by_what_it_was_made_of() -> None:
    app = an_app()

    @app.task
    def send(invoice: Invoice) -> None: ...

    with Harness(app) as h:
        send.enqueue(Invoice(customer_id=1, amount="2"))
        assert_enqueued(send, where={"invoice": Invoice(customer_id=1, amount="2")})
        assert_enqueued(send, where={"invoice": {"customer_id": 1, "amount": "2"}})
        with pytest.raises(AssertionError, match="'customer_id': 1, 'amount': '2'"):
            h.assert_enqueued(send, where={"invoice": {"customer_id": 9}})


def test_enqueued_is_asserted() -> None:
    app = an_app()

    @app.task
    def child(number: int) -> None: ...

    @app.task
    def parent() -> None:
        child.enqueue(7)
        app.tx(object()).enqueue(child, 8)

    with Harness(app) as h:
        parent.enqueue()
        h.run_until_idle()
        assert_enqueued(child, where={"number": 7}, times=1)
        assert len(h.assert_enqueued("child")) == 2
        assert_enqueued(child, where=lambda run: run.arguments["number"] > 7)
        h.assert_not_enqueued(child, where={"number": 9})
        with pytest.raises(AssertionError, match="expected 3 runs of 'child'"):
            h.assert_enqueued(child, times=3)
        with pytest.raises(KeyError, match="no task 'nobody'"):
            h.assert_enqueued("nobody")
    with pytest.raises(RuntimeError, match="open Harness"):
        assert_enqueued(child)


def test_checkpoints_and_cancelling_reach_the_handler() -> None:
    app = an_app()
    began: list[Any] = []

    @app.task(retry={"max_attempts": 2})
    def export(ctx: Context) -> None:
        began.append((ctx.checkpoint_value or {"row": 0})["row"])
        ctx.checkpoint({"row": 10})
        if len(began) == 1:
            raise ValueError("half way")

    with Harness(app) as h:
        export.enqueue()
        h.run_until_idle()
        later = export.configure(delay="1h").enqueue()
        later.cancel("changed my mind")
        h.advance("2h")
        assert (began, h.runs().cancelled) == ([0, 10], 1)


def test_async_handlers_run_in_plain_tests() -> None:
    app = an_app()

    @app.task(retry={"max_attempts": 2})
    async def fetch(number: int) -> int:
        await asyncio.sleep(0)  # noqa: TID251 -- gives way, takes no time
        if number < 0:
            raise ValueError(number)
        return number

    with Harness(app) as h:
        fetch.enqueue(1)
        fetch.enqueue(-1)
        h.run_until_idle()
        assert (h.runs().succeeded, h.runs().dead) == (1, 1)


async def test_and_on_the_loop_of_an_async_test() -> None:
    app = an_app()
    loop = asyncio.get_running_loop()

    @app.task(schedule="0 * * * *")
    async def fetch() -> bool:
        return asyncio.get_running_loop() is loop

    async with Harness(app) as h:
        handle = await fetch.aenqueue()
        assert (await handle.awaited()).result is True
        await h.aadvance("1h")
        await h.atravel("2026-01-01T02:00Z")
        assert h.runs().succeeded == 3
        await fetch.aenqueue()
        with pytest.raises(RuntimeError, match="arun_until_idle"):
            h.run_until_idle()


def test_middleware_is_around_attempts() -> None:
    said: list[str] = []

    class Noting(Middleware):
        def before_attempt(self, context: Context) -> None:
            said.append(f"before {context.task}")

        def after_attempt(self, context: Context, end: Any) -> None:
            said.append(f"after {end.succeeded}")

    app = App(name="test", middleware=[Noting()])

    @app.task(retry={"max_attempts": 2})
    def work() -> None: ...

    with Harness(app) as h, h.failing(work, times=1):
        work.enqueue()
        h.run_until_idle()
    assert said == ["before work", "after False", "before work", "after True"]


def test_options_are_checked_as_the_service_checks_them() -> None:
    app = an_app()

    @app.task(queue="a:b")
    def wrong() -> None: ...

    with Harness(app), pytest.raises(Invalid, match="queue"):
        wrong.enqueue()


def test_the_app_is_itself_again_afterwards() -> None:
    app = an_app()
    before = dict(app.__dict__)
    with Harness(app):
        assert app.client is not None
    assert {name for name in app.__dict__ if name not in before} == set()


def test_what_a_harness_does_not_know_it_says() -> None:
    app = an_app()
    with Harness(app), pytest.raises(NotImplementedError, match=r"jobs\.create"):
        app.jobs.create(name="x", schedule="every 15m")
    with pytest.raises(TypeError, match="expected an app"):
        Harness()


def test_time_is_not_turned_back_nor_moved_from_inside() -> None:
    app = an_app()

    @app.task(retry={"max_attempts": 1})
    def work() -> None:
        h.advance("1h")

    with Harness(app) as h:
        with pytest.raises(ValueError, match="not before"):
            h.travel("2020-01-01T00:00Z")
        with pytest.raises(ValueError, match="offset"):
            h.travel("2027-01-01T00:00")
        work.enqueue()
        h.run_until_idle()
        assert h.runs().dead == 1


def test_the_wall_clock_can_be_frozen() -> None:
    app = an_app()

    @app.task(schedule="0 2 * * *", timezone="Europe/Stockholm")
    def nightly() -> None: ...

    with frozen("2026-03-28T12:00Z"):
        (fire,) = nightly.next(1)
    assert (fire.utc, fire.local.hour) == (datetime(2026, 3, 29, 1, tzinfo=UTC), 3)
    with Harness(app, now="2026-06-01T00:00Z") as h:
        assert nightly.next(1)[0].utc == h.now + timedelta(days=1)


def test_the_same_seed_rolls_the_same_dice() -> None:
    def moments(seed: int) -> list[datetime]:
        app = an_app()
        tried: list[datetime] = []

        @app.task
        def flaky(ctx: Context) -> None:
            tried.append(ctx.started_at)
            raise ValueError

        with Harness(app, seed=seed) as h:
            flaky.enqueue()
            h.run_until_idle()
        return tried

    assert moments(1) == moments(1) != moments(2)
