"""Shares, rates, ceilings, overlap and business keys keep their promises for all inputs."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from betimes.fairness.bucket import Bucket, Rate
from betimes.fairness.dedupe import DedupeAnswer, DedupeForm, Holder
from betimes.fairness.dedupe import answer as dedupe
from betimes.fairness.overlap import OverlapPolicy, Unended, Verdict
from betimes.fairness.overlap import answer as overlap
from betimes.fairness.pace import drained_at, paced
from betimes.fairness.room import Ceiling, room_for
from betimes.fairness.share import Shares

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
weights = st.dictionaries(st.integers(0, 20), st.floats(0.1, 100), min_size=1, max_size=12)


@given(weights=weights, helping=st.integers(1, 256))
def test_backlogged_tenants_get_their_weights_part(weights: dict[int, float], helping: int) -> None:
    """Within ten per cent, once everybody has been served a few times."""
    shares: Shares[int] = Shares()
    served = dict.fromkeys(weights, 0)
    rounds = int(60 * sum(weights.values()) / min(weights.values()))
    for _ in range(rounds):
        who = shares.pick(weights)
        assert who is not None
        served[who] += helping
        shares.charge(who, helping, weights[who])
    total, all_weights = sum(served.values()), sum(weights.values())
    for who, weight in weights.items():
        assert served[who] / total == pytest.approx(weight / all_weights, rel=0.1)


@given(weights=weights)
def test_nobody_who_waits_is_passed_over_for_long(weights: dict[int, float]) -> None:
    shares: Shares[int] = Shares()
    waited = dict.fromkeys(weights, 0)
    bound = sum(weights.values()) / min(weights.values()) + len(weights)
    for _ in range(500):
        who = shares.pick(weights)
        assert who is not None
        shares.charge(who, 1, weights[who])
        for other in waited:
            waited[other] = 0 if other == who else waited[other] + 1
            assert waited[other] <= bound


@given(idle=st.integers(1, 1000))
def test_idleness_earns_no_credit(idle: int) -> None:
    """Who was away for long does not monopolise the queue when it comes back."""
    shares: Shares[str] = Shares()
    for _ in range(idle):
        shares.charge(shares.pick({"busy": 1.0}) or "", 1, 1.0)
    both = {"busy": 1.0, "back": 1.0}
    taken = []
    for _ in range(10):
        who = shares.pick(both) or ""
        shares.charge(who, 1, 1.0)
        taken.append(who)
    assert 4 <= taken.count("back") <= 6


def test_a_change_of_weight_counts_from_now_on() -> None:
    shares: Shares[str] = Shares()
    for _ in range(100):
        who = shares.pick({"a": 1.0, "b": 1.0}) or ""
        shares.charge(who, 1, 1.0)
    served = {"a": 0, "b": 0}
    after = {"a": 3.0, "b": 1.0}
    for _ in range(400):
        who = shares.pick(after) or ""
        shares.charge(who, 1, after[who])
        served[who] += 1
    assert served["a"] == pytest.approx(300, abs=5)


def test_memory_is_bounded_and_nobody_waiting_is_forgotten() -> None:
    shares: Shares[int] = Shares(kept_max=10)
    for who in range(100):
        shares.charge(who, 1, 1.0)
        shares.pick({who: 1.0, 999: 1.0})
    assert len(shares._times) <= 12
    assert shares.order({}) == []
    assert shares.pick({}) is None
    with pytest.raises(ValueError, match="positive"):
        shares.charge(1, 1, 0)


@given(
    limit=st.integers(1, 1000),
    burst=st.integers(1, 100),
    steps=st.lists(st.tuples(st.floats(-1, 5), st.integers(0, 50)), max_size=30),
)
def test_a_bucket_never_gives_more_than_its_rate(
    limit: int, burst: int, steps: list[tuple[float, int]]
) -> None:
    rate = Rate(limit, timedelta(seconds=10), burst)
    bucket, now, given_out = Bucket.full(rate, NOW), NOW, 0
    latest = NOW
    for seconds, wanted in steps:
        now += timedelta(seconds=seconds)
        latest = max(latest, now)
        taken, bucket = bucket.take(rate, wanted, now)
        assert 0 <= taken <= wanted
        given_out += taken
        ceiling = burst + rate.per_second * (latest - NOW).total_seconds()
        assert given_out <= ceiling + 1e-6


def test_an_empty_bucket_says_when_it_will_have_something() -> None:
    rate = Rate(2, SECOND, 2)
    taken, bucket = Bucket.full(rate, NOW).take(rate, 5, NOW)
    assert taken == 2
    assert bucket.next_token_at(rate, NOW) == NOW + SECOND / 2
    assert bucket.take(rate, 1, NOW + SECOND / 4)[0] == 0
    assert bucket.take(rate, 1, NOW + SECOND / 2)[0] == 1
    assert bucket.give_back(rate, 9).tokens == 2
    with pytest.raises(ValueError, match="positive"):
        Rate(0, SECOND, 1)


@given(
    wanted=st.integers(0, 100),
    ceilings=st.lists(
        st.builds(
            Ceiling,
            st.sampled_from(["tenant", "queue", "key", "origin"]),
            st.just("x"),
            st.integers(0, 50),
            st.integers(0, 80),
        ),
        max_size=4,
    ),
)
def test_no_ceiling_is_passed_and_each_that_blocks_is_told(
    wanted: int, ceilings: list[Ceiling]
) -> None:
    room = room_for(wanted, ceilings)
    assert 0 <= room.granted <= wanted
    for ceiling in ceilings:
        assert room.granted == 0 or ceiling.in_flight + room.granted <= ceiling.most
        assert (ceiling in room.blocking) == (ceiling.room < wanted)
    if not room.blocking:
        assert room.granted == wanted


EARLIER = [Unended(0, 0), Unended(1, 0), Unended(0, 1), Unended(1, 1), Unended(2, 3)]


@pytest.mark.parametrize("policy", OverlapPolicy)
@pytest.mark.parametrize("earlier", EARLIER)
def test_overlap_promises(policy: OverlapPolicy, earlier: Unended) -> None:
    """Only `allow` runs beside an earlier run; only `skip` and `buffer_one` drop fires."""
    answer = overlap(policy, earlier)
    if earlier == Unended(0, 0):
        assert answer.verdict is Verdict.GO
    if policy is not OverlapPolicy.ALLOW and earlier.running:
        assert answer.verdict is not Verdict.GO
    if answer.verdict is Verdict.SKIP:
        assert policy in {OverlapPolicy.SKIP, OverlapPolicy.BUFFER_ONE}
        assert answer.reason == "OVERLAP_SKIPPED"
    if answer.cancel_running:
        assert policy in {OverlapPolicy.CANCEL_RUNNING, OverlapPolicy.REPLACE}
        assert earlier.running
    if policy is OverlapPolicy.BUFFER_ONE and answer.verdict is Verdict.WAIT:
        assert earlier.waiting == 0
    assert answer.drop_waiting == (policy is OverlapPolicy.REPLACE and earlier.waiting > 0)


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("form", "age", "active", "started", "expected"),
    [
        (DedupeForm.UNIQUE, 2 * HOUR, True, True, DedupeAnswer.REUSE),
        (DedupeForm.UNIQUE, HOUR / 2, False, True, DedupeAnswer.REUSE),
        (DedupeForm.UNIQUE, 2 * HOUR, False, True, DedupeAnswer.CREATE),
        (DedupeForm.THROTTLE, HOUR / 2, False, True, DedupeAnswer.REUSE),
        (DedupeForm.THROTTLE, 2 * HOUR, True, True, DedupeAnswer.CREATE),
        (DedupeForm.DEBOUNCE, HOUR / 2, True, False, DedupeAnswer.REPLACE),
        (DedupeForm.DEBOUNCE, HOUR / 2, True, True, DedupeAnswer.CREATE),
        (DedupeForm.DEBOUNCE, 2 * HOUR, True, False, DedupeAnswer.CREATE),
    ],
)
def test_business_keys(
    form: DedupeForm, age: timedelta, *, active: bool, started: bool, expected: DedupeAnswer
) -> None:
    holder = Holder(NOW - age, active=active, started=started)
    assert dedupe(form, holder, HOUR, NOW) is expected
    assert dedupe(form, None, HOUR, NOW) is DedupeAnswer.CREATE
    assert dedupe(DedupeForm.UNIQUE, holder, None, NOW) is (
        DedupeAnswer.REUSE if active else DedupeAnswer.CREATE
    )


@example(count=200, rate=81.998046875)
@given(count=st.integers(0, 200), rate=st.floats(0.1, 1000))
def test_a_pace_is_even_and_ends_when_it_says(count: int, rate: float) -> None:
    times = list(paced(count, start=NOW, per_second=rate))
    assert times == sorted(times)
    assert len(times) == count
    assert all(time <= drained_at(count, start=NOW, per_second=rate) for time in times)
    for second in range(int(count / rate) + 1):
        begin = NOW + second * SECOND
        assert sum(begin <= time < begin + SECOND for time in times) <= rate + 1
    with pytest.raises(ValueError, match="positive"):
        next(paced(1, start=NOW, per_second=0))
