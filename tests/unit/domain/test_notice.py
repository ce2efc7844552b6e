"""What becomes of deliveries and endpoints, as a table of facts."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from betimes.domain.event import Severity
from betimes.domain.ids import shard_of, time_ms_of
from betimes.domain.notice import (
    ATTEMPTS_MAX,
    DELAYS,
    HOLD_AFTER,
    HOLD_MAX,
    THROTTLE,
    DeliveryState,
    Filter,
    Health,
    Sent,
    delivery_id,
    next_step,
    wants,
    wants_successes,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOOD, BAD = Sent(ok=True, status=200), Sent(ok=False, status=500)
DAY = timedelta(days=1)


def test_success_ends_a_delivery() -> None:
    step = next_step(GOOD, attempt=3, now=NOW, roll=0.0, is_test=False)
    assert (step.state, step.attempt, step.due_at) == (DeliveryState.DELIVERED, 3, None)


@pytest.mark.parametrize("attempt", range(1, ATTEMPTS_MAX))
def test_failures_wait_by_the_table_with_a_little_chance(attempt: int) -> None:
    low = next_step(BAD, attempt=attempt, now=NOW, roll=0.0, is_test=False).due_at
    high = next_step(BAD, attempt=attempt, now=NOW, roll=1.0, is_test=False).due_at
    assert low == NOW + DELAYS[attempt] * 0.9
    assert high == NOW + DELAYS[attempt] * 1.1


def test_the_last_failure_is_the_end() -> None:
    step = next_step(BAD, attempt=ATTEMPTS_MAX, now=NOW, roll=0.5, is_test=False)
    assert step.state is DeliveryState.FAILED
    assert next_step(BAD, attempt=1, now=NOW, roll=0.5, is_test=True).state is DeliveryState.FAILED


def test_whoever_asks_for_a_pause_gets_it_up_to_a_day() -> None:
    asked = Sent(ok=False, status=503, pause=timedelta(minutes=10))
    assert next_step(asked, attempt=1, now=NOW, roll=0.5, is_test=False).due_at == NOW + (
        timedelta(minutes=10)
    )
    greedy = Sent(ok=False, status=503, pause=timedelta(days=400))
    assert next_step(greedy, attempt=1, now=NOW, roll=0.5, is_test=False).due_at == NOW + DAY


def test_an_endpoint_is_left_alone_longer_and_longer() -> None:
    health, pauses = Health(), []
    for _ in range(20):
        health = health.after(BAD, now=NOW, roll=1.0)
        pauses.append(health.held_until)
    assert pauses[: HOLD_AFTER - 1] == [None] * (HOLD_AFTER - 1)
    seconds = [(one - NOW).total_seconds() for one in pauses if one is not None]
    assert seconds[:4] == [5, 10, 20, 40]
    assert seconds[-1] == HOLD_MAX.total_seconds()
    assert health.failing_since == NOW
    assert health.after(GOOD, now=NOW, roll=0.5) == Health()


def test_throttling_holds_at_the_first_sign() -> None:
    throttled = Sent(ok=False, status=429, throttled=True)
    assert Health().after(throttled, now=NOW, roll=0.0).held_until == NOW + THROTTLE
    later = Sent(ok=False, status=429, throttled=True, pause=timedelta(seconds=7))
    assert Health().after(later, now=NOW, roll=0.0).held_until == NOW + timedelta(seconds=7)


def test_giving_up_needs_both_time_and_tries() -> None:
    long = Health(failures=5, failing_since=NOW - 3 * DAY)
    assert long.is_persistent(now=NOW, after=3 * DAY)
    assert not long.is_persistent(now=NOW - timedelta(seconds=1), after=3 * DAY)
    few = Health(failures=4, failing_since=NOW - 9 * DAY)
    assert not few.is_persistent(now=NOW, after=3 * DAY)
    assert not Health().is_persistent(now=NOW, after=timedelta(0))


def test_the_same_event_and_endpoint_are_one_delivery() -> None:
    event, endpoint = UUID(int=(1 << 80) * 77 + 5), UUID(int=3 << 64)
    first = delivery_id(event, endpoint)
    assert first == delivery_id(event, endpoint)
    assert first != delivery_id(endpoint, event)
    assert time_ms_of(first) == 77
    assert shard_of(first) == 3


def test_filters_restrict_and_nothing_restricts_nothing() -> None:
    body = {"queue": "mail", "job_id": "job_1"}
    assert wants(["*"], Filter(), "run.dead", body, {})
    assert not wants(["*"], Filter(), "endpoint.test", body, {})
    assert wants(["run.dead"], Filter(queues=frozenset({"mail"})), "run.dead", body, {})
    assert not wants(["*"], Filter(queues=frozenset({"other"})), "run.dead", body, {})
    assert not wants(["*"], Filter(queues=frozenset({"mail"})), "run.dead", {}, {})
    assert not wants(["*"], Filter(jobs=frozenset({"job_2"})), "run.dead", body, {})
    assert wants(["*"], Filter(jobs=frozenset({"job_1"})), "run.dead", body, {})
    assert wants(["*"], Filter(tags={"env": "prod"}), "run.dead", body, {"env": "prod", "a": "b"})
    assert not wants(["*"], Filter(tags={"env": "prod"}), "run.dead", body, {"env": "test"})
    assert not wants(["*"], Filter(severity=Severity.CRITICAL), "run.dead", body, {})
    grave = {**body, "severity": "critical"}
    assert wants(["alert.*"], Filter(severity=Severity.CRITICAL), "alert.firing", grave, {})


def test_a_filter_survives_being_stored() -> None:
    full = Filter(
        queues=frozenset({"a", "b"}),
        tags={"x": "y"},
        jobs=frozenset({"job_1"}),
        severity=Severity.ERROR,
    )
    assert Filter.from_json(full.to_json()) == full
    assert Filter().to_json() == {}
    assert Filter.from_json({}) == Filter()


def test_successes_are_written_for_those_who_can_hear_them() -> None:
    assert wants_successes(["run.succeeded"], Filter())
    assert wants_successes(["run.*"], Filter())
    assert wants_successes(["*"], Filter())
    assert not wants_successes(["run.dead"], Filter())
    assert not wants_successes(["*"], Filter(severity=Severity.WARNING))
