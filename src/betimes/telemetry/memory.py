"""A handler that remembers, for tests and for pages that show the latest events."""

from collections import deque

from betimes.telemetry.events import Event

REMEMBERED_MAX = 1_000


class Recorder:
    """Keeps the latest events."""

    def __init__(self, *, remembered_max: int = REMEMBERED_MAX) -> None:
        self.events: deque[Event] = deque(maxlen=remembered_max)

    def __call__(self, event: Event) -> None:
        """Remember one event."""
        self.events.append(event)

    def named(self, name: str) -> list[Event]:
        """The remembered events of one name, oldest first."""
        return [event for event in self.events if event.name == name]
