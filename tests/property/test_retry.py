"""Retry decisions keep their promises for every policy."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.errors import Invalid
from betimes.domain.outcome import (
    Abandoned,
    Cancelled,
    ErrorFacts,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from betimes.domain.retry import (
    Backoff,
    Decision,
    Effort,
    Finish,
    Jitter,
    Retry,
    RetryPolicy,
    decide,
)
from betimes.domain.states import RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILURE = Failed(ErrorFacts("ValueError", "no"))
SECOND = timedelta(seconds=1)

pauses = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30))
rolls = st.floats(min_value=0, max_value=1, exclude_max=True)
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 1000),
    backoff=st.sampled_from(Backoff),
    initial=pauses,
    factor=st.floats(1, 100),
    max=pauses,
    delays=st.lists(pauses, min_size=1, max_size=4).map(tuple),
    jitter=st.sampled_from(Jitter),
)


def after(outcome: Outcome, *, attempt: int = 1, roll: float = 0.5, **policy: object) -> Decision:
    return decide(outcome, Effort(attempt, NOW), RetryPolicy(**policy), NOW, roll)  # type: ignore[arg-type]


@given(policy=policies, attempt=st.integers(1, 1000), roll=rolls)
def test_a_pause_is_never_negative_and_never_above_the_cap(
    policy: RetryPolicy, attempt: int, roll: float
) -> None:
    assert timedelta(0) <= policy.pause(attempt, roll) <= policy.max


@given(policy=policies, attempt=st.integers(1, 1000), roll=rolls)
def test_the_last_allowed_attempt_is_the_last(
    policy: RetryPolicy, attempt: int, roll: float
) -> None:
    decision = decide(FAILURE, Effort(attempt, NOW), policy, NOW, roll)
    if attempt >= policy.max_attempts:
        assert decision == Finish(RunState.DEAD, "RETRIES_EXHAUSTED")
    else:
        assert isinstance(decision, Retry)
        assert decision.counts
        assert decision.at >= NOW


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff.EXPONENTIAL, [10, 30, 90, 100]),
        (Backoff.LINEAR, [10, 20, 30, 40]),
        (Backoff.FIXED, [10, 10, 10, 10]),
        (Backoff.LIST, [1, 7, 7, 7]),
    ],
)
def test_pauses_grow_as_the_policy_says(backoff: Backoff, expected: list[int]) -> None:
    policy = RetryPolicy(
        backoff=backoff,
        initial=10 * SECOND,
        factor=3,
        max=100 * SECOND,
        delays=(SECOND, 7 * SECOND),
        jitter=Jitter.NONE,
    )
    assert [policy.pause(n, 0.9).total_seconds() for n in (1, 2, 3, 4)] == expected


def test_jitter_leaves_to_chance_what_it_says() -> None:
    for jitter, low, high in ((Jitter.FULL, 0, 10), (Jitter.EQUAL, 5, 10), (Jitter.NONE, 10, 10)):
        policy = RetryPolicy(backoff=Backoff.FIXED, initial=10 * SECOND, jitter=jitter)
        assert policy.pause(1, 0.0) == low * SECOND
        assert policy.pause(1, 1.0) == high * SECOND


def test_every_outcome_has_its_decision() -> None:
    later = NOW + timedelta(minutes=3)
    assert after(Succeeded()) == Finish(RunState.SUCCEEDED)
    assert after(Cancelled("bored")) == Finish(RunState.CANCELLED, "bored")
    assert after(Snoozed(later)) == Retry(later, counts=False, reason="SNOOZED")
    assert after(Snoozed(NOW - SECOND)) == Retry(NOW, counts=False, reason="SNOOZED")
    assert after(Released()) == Retry(NOW, counts=False, reason="RELEASED")
    for outcome in (TimedOut(SECOND), Abandoned(1), FAILURE):
        assert isinstance(after(outcome), Retry)
        assert after(outcome, attempt=5) == Finish(RunState.DEAD, "RETRIES_EXHAUSTED")


def test_a_permanent_error_gives_up_at_once() -> None:
    final = Finish(RunState.DEAD, "PERMANENT_ERROR")
    assert after(Failed(ErrorFacts("X", ""), retryable=False)) == final
    assert after(FAILURE, give_up_on=frozenset({"ValueError"})) == final
    assert after(FAILURE, retry_on=frozenset({"KeyError"})) == final
    assert isinstance(after(FAILURE, retry_on=frozenset({"ValueError"})), Retry)
    both = frozenset({"ValueError"})
    assert after(FAILURE, retry_on=both, give_up_on=both) == final


def test_retry_after_lengthens_the_pause_up_to_the_cap_and_never_shortens_it() -> None:
    def at(after_seconds: int) -> datetime:
        wish = Failed(ErrorFacts("X", ""), after=after_seconds * SECOND)
        decision = after(wish, initial=60 * SECOND, max=600 * SECOND, jitter=Jitter.NONE)
        assert isinstance(decision, Retry)
        return decision.at

    assert at(5) == NOW + 60 * SECOND
    assert at(300) == NOW + 300 * SECOND
    assert at(9999) == NOW + 600 * SECOND


def test_no_retry_starts_after_the_time_for_all_of_them() -> None:
    old = Effort(2, NOW - timedelta(hours=1))
    policy = RetryPolicy(max_elapsed=timedelta(hours=1), initial=SECOND, jitter=Jitter.NONE)
    assert decide(FAILURE, old, policy, NOW, 0.5) == Finish(RunState.DEAD, "RETRIES_EXHAUSTED")
    fresh = Effort(2, NOW - timedelta(minutes=1))
    assert isinstance(decide(FAILURE, fresh, policy, NOW, 0.5), Retry)


@pytest.mark.parametrize(
    ("policy", "pointer"),
    [
        ({"max_attempts": 0}, "/retry/max_attempts"),
        ({"max_attempts": 1001}, "/retry/max_attempts"),
        ({"factor": 0.5}, "/retry/factor"),
        ({"backoff": Backoff.LIST}, "/retry/delays"),
        ({"initial": timedelta(days=31)}, "/retry/initial"),
        ({"max": timedelta(seconds=-1)}, "/retry/max"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(policy: dict[str, object], pointer: str) -> None:
    with pytest.raises(Invalid) as refusal:
        RetryPolicy(**policy)  # type: ignore[arg-type]
    assert refusal.value.pointer == pointer
    assert "got" in refusal.value.sentence or "expected" in refusal.value.sentence
