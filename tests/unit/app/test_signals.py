"""Signals are values here: the first drains, the second hastens, then comes the last resort."""

import signal
from collections.abc import Callable

from betimes.app.signals import LAST_GRACE_SECONDS, Interrupts
from betimes.rhythm import Stopping


class Later:
    """Remembers what is to be called later."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def __call__(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((seconds, call))


def test_the_first_signal_asks_for_a_graceful_end() -> None:
    stopping, later = Stopping(), Later()
    interrupts = Interrupts(stopping=stopping, later=later)
    interrupts.receive(signal.SIGTERM)
    assert (stopping.requested, stopping.hastened) == (True, False)
    assert (stopping.reason, interrupts.exit_code, later.calls) == ("SIGTERM", 0, [])


def test_the_second_signal_ends_at_once_and_names_itself_in_the_exit_code() -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        stopping, later, left = Stopping(), Later(), list[int]()
        interrupts = Interrupts(stopping=stopping, later=later, leave=left.append)
        interrupts.receive(signal.SIGTERM)
        interrupts.receive(number)
        interrupts.receive(signal.SIGTERM)
        assert stopping.hastened
        assert interrupts.exit_code == code
        assert left == []
        (seconds, call), _ = later.calls
        assert seconds == LAST_GRACE_SECONDS
        call()
        assert left == [code]
