"""Signals as wishes: the first asks for a graceful end, the second for an immediate one."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from betimes.rhythm import Stopping

HEARD = (signal.SIGTERM, signal.SIGINT)
LAST_GRACE_SECONDS = 2.0
SIGNALLED = 128  # the shell's convention: 128 plus the number of the signal


class Interrupts:
    """Counts signals and turns them into degrees of stopping.

    `leave` ends the process without asking anyone. It is called some moments after the second
    signal, for the case that something does not even react to cancellation.
    """

    def __init__(
        self,
        *,
        stopping: Stopping,
        later: Callable[[float, Callable[[], None]], object],
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        self._stopping = stopping
        self._later = later
        self._leave = leave
        self._received = 0
        self.exit_code = 0

    def receive(self, number: int) -> None:
        """Take note of one signal."""
        self._received += 1
        name = signal.Signals(number).name
        if self._received == 1:
            self._stopping.request(name)
            return
        self.exit_code = self.exit_code or SIGNALLED + number
        self._stopping.hasten(f"second {name}")
        self._later(LAST_GRACE_SECONDS, lambda: self._leave(self.exit_code))


@contextmanager
def hearing_signals(stopping: Stopping) -> Iterator[Interrupts]:
    """Listen while inside; needs the running loop of the main thread."""
    loop = asyncio.get_running_loop()
    interrupts = Interrupts(stopping=stopping, later=loop.call_later)
    for number in HEARD:
        loop.add_signal_handler(number, interrupts.receive, int(number))
    try:
        yield interrupts
    finally:
        for number in HEARD:
            loop.remove_signal_handler(number)
