"""Being told that something has changed, instead of looking again and again.

The stream of events tells of most changes, not of all of them, so whoever watches still looks at
intervals; what the stream tells is seen at once. Where there is no stream (an old server, too many
of them, no right to read events) looking is what is left.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from betimes.cli import machine
from betimes.domain.event import CATALOGUE
from betimes.sdk import ambient

if TYPE_CHECKING:  # loaded when something is asked, not for --help
    from betimes.sdk.client import Client
    from betimes.sdk.way import Way

CLOSEST_SECONDS = 0.2
"""So long at least lies between two looks, however much happens."""
NOUNS: Mapping[str, str] = {
    "job": "job", "run": "run", "dead": "run", "queue": "queue", "worker": "worker",
    "alert": "alert", "hook": "endpoint", "upcoming": "job",
}  # fmt: skip
"""The events that concern what a command shows."""
Concerns = Callable[[Mapping[str, Any]], bool]


def types_of(noun: str) -> list[str]:
    """The types of events that say something about a noun; none when no event does."""
    head = NOUNS.get(noun)
    return [name for name in CATALOGUE if name.partition(".")[0] == head] if head else []


class Waker:
    """Hears events beside the command, and ends its pauses."""

    def __init__(self, way: "Way", types: Sequence[str], concerns: Concerns | None = None) -> None:
        self._way = way
        self._types = types
        self._concerns = concerns or (lambda _: True)
        self._rung = threading.Event()
        self._hears = threading.Event()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        if self._types:
            from betimes.sdk.client import Client  # noqa: PLC0415 -- see Talk

            self._client = Client(self._way)
            self._hears.set()
            threading.Thread(target=self._listen, name="watch.events", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def _listen(self) -> None:
        from betimes.sdk.errors import ClientError  # noqa: PLC0415 -- see Talk

        if self._client is None:
            return
        try:
            for event in self._client.stream_events(types=self._types):
                if self._concerns(event.data):
                    self._rung.set()
        except ClientError:
            pass  # the service has no stream for us; looking is what is left
        finally:
            self._hears.clear()
            self._rung.set()

    def pause(self, seconds: float) -> None:
        """Wait until something has happened, or so long."""
        if not self._hears.is_set():
            ambient.pause(seconds)
            return
        began = machine.monotonic()
        if self._rung.wait(seconds):
            # What happens in company is looked at together.
            ambient.pause(max(0.0, min(CLOSEST_SECONDS, seconds) - (machine.monotonic() - began)))
        self._rung.clear()
