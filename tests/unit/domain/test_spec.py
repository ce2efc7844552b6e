"""What a worker needs survives the way through the database."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.parcel import rank_of
from betimes.domain.retry import Backoff, Jitter, RetryPolicy
from betimes.domain.spec import retry_from_json, retry_to_json, spec_from_json

pauses = st.integers(0, 30 * 86_400_000).map(lambda ms: timedelta(milliseconds=ms))
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 1000),
    backoff=st.sampled_from(Backoff),
    initial=pauses,
    factor=st.floats(1, 100),
    max=pauses,
    delays=st.lists(pauses, min_size=1, max_size=4).map(tuple),
    jitter=st.sampled_from(Jitter),
    max_elapsed=st.none() | pauses,
    retry_on=st.frozensets(st.text(max_size=5), max_size=3),
    give_up_on=st.frozensets(st.text(max_size=5), max_size=3),
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@given(policy=policies)
def test_a_retry_policy_round_trips(policy: RetryPolicy) -> None:
    assert retry_from_json(retry_to_json(policy)) == policy


def test_the_default_policy_stores_nothing() -> None:
    assert retry_to_json(RetryPolicy()) == {}
    assert retry_from_json({}) == RetryPolicy()


def test_a_spec_reads_durations_in_milliseconds() -> None:
    spec = spec_from_json(
        handler="h",
        payload=b"{}",
        options={"timeout_ms": 1500, "start_deadline_ms": 60_000, "retry": {"max_attempts": 1}},
        fixed_delay=timedelta(seconds=90),
    )
    assert spec.timeout == timedelta(seconds=1.5)
    assert spec.start_deadline == timedelta(minutes=1)
    assert spec.retry.max_attempts == 1
    assert spec.fixed_delay == timedelta(seconds=90)
    assert spec_from_json(handler=None, payload=None).timeout is None


@given(low=st.integers(0, 8), waited=st.integers(0, 1000))
def test_low_priority_ages_past_high(low: int, waited: int) -> None:
    """However high the priority of what comes in, what waited long enough goes first."""
    old = rank_of(NOW, low)
    fresh = rank_of(NOW + timedelta(seconds=waited), 9)
    assert (old <= fresh) == (waited >= (9 - low) * 10)
