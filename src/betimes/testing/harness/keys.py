"""Concurrency keys: how many runs of one key are in flight, and who waits behind them."""

from collections import deque

from betimes.testing.harness.run import HarnessRun


class Keys:
    """Runs in flight and in line, by their key."""

    def __init__(self) -> None:
        self._inside: dict[str, list[HarnessRun]] = {}
        self._waiting: dict[str, deque[HarnessRun]] = {}

    def is_full(self, run: HarnessRun) -> bool:
        """Whether a run has to wait for another one of its key."""
        key = run.terms.gate
        return key is not None and len(self._inside.get(key, ())) >= run.terms.gate_most

    def wait(self, run: HarnessRun) -> None:
        """Stand in line."""
        self._waiting.setdefault(run.terms.gate or "", deque()).append(run)

    def enter(self, run: HarnessRun) -> None:
        """It is in flight."""
        if run.terms.gate is not None:
            self._inside.setdefault(run.terms.gate, []).append(run)

    def leave(self, run: HarnessRun) -> HarnessRun | None:
        """It is no longer; whoever may come now, because it was in somebody's way."""
        key = run.terms.gate
        if key is None or run not in self._inside.get(key, ()):
            return None
        self._inside[key].remove(run)
        waiting = self._waiting.get(key)
        return waiting.popleft() if waiting else None
