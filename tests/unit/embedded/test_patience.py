"""Silence is borne for a while; words or work start the while anew."""

from collections import Counter

from betimes.embedded.patience import Patience
from betimes.testing import ManualClock


def a_patience(clock: ManualClock, signs: Counter[str]) -> Patience:
    return Patience(
        clock=clock, seconds=10, words=lambda: signs["words"], work=lambda: signs["work"]
    )


def test_words_renew_it() -> None:
    clock, signs = ManualClock(), Counter[str]()
    patience = a_patience(clock, signs)
    clock.advance(9)
    signs["words"] += 1
    assert not patience.exhausted()
    clock.advance(9)
    assert not patience.exhausted()
    clock.advance(1)
    assert patience.exhausted()


def test_silent_work_renews_it_too() -> None:
    """A long checkpoint says nothing."""
    clock, signs = ManualClock(), Counter[str]()
    patience = a_patience(clock, signs)
    for _ in range(5):
        clock.advance(11)
        signs["work"] += 1
        assert not patience.exhausted()
    clock.advance(11)
    assert patience.exhausted()
