"""Silence is borne for a while; progress starts the while anew."""

from betimes.embedded.patience import Patience
from betimes.testing import ManualClock


def test_silence_exhausts_and_progress_renews() -> None:
    clock, size = ManualClock(), 0
    patience = Patience(clock=clock, seconds=10, progress=lambda: size)
    clock.advance(9)
    assert not patience.exhausted()
    size = 1
    assert not patience.exhausted()
    clock.advance(9)
    assert not patience.exhausted()
    clock.advance(1)
    assert patience.exhausted()
