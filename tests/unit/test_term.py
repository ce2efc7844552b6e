"""A lease is trusted from the moment it was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from betimes.coordinator.term import LeaseTerm

seconds = st.floats(min_value=0, max_value=1e6, allow_nan=False)


@given(asked_at=seconds, answer_took=seconds, ttl=seconds, margin=seconds)
def test_a_slow_answer_never_stretches_trust(
    asked_at: float, answer_took: float, ttl: float, margin: float
) -> None:
    """Whatever the answer took, trust ends before the database could give the shard away."""
    term = LeaseTerm.won(1, 7, asked_at=asked_at, ttl=ttl, margin=margin)
    assert term.trusted_until <= asked_at + ttl
    assert not term.is_trusted(asked_at + max(ttl - margin, 0))
    assert term.is_trusted(asked_at + answer_took) == (asked_at + answer_took < term.trusted_until)


@given(asked_at=seconds, earlier=seconds)
def test_a_late_answer_to_an_early_question_changes_nothing(
    asked_at: float, earlier: float
) -> None:
    term = LeaseTerm.won(1, 7, asked_at=asked_at, ttl=10, margin=2)
    again = term.renewed(asked_at=asked_at - earlier, ttl=10, margin=2)
    assert again.trusted_until == term.trusted_until
    assert (again.shard, again.epoch) == (term.shard, term.epoch)
