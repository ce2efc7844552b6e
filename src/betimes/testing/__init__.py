"""Helpers for tests, ours and our users': never imported by the service."""

from betimes.testing.clock import ManualClock
from betimes.testing.signal import Signal

__all__ = ["ManualClock", "Signal"]
