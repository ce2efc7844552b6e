"""A background duty that fails says so once per outage, not once per try."""

from betimes.telemetry.core import Telemetry
from betimes.telemetry.events import Event


class Outage:
    """Counts failures in a row: the first is an error, the rest debug talk, the end is told too."""

    def __init__(self, *, duty: str, telemetry: Telemetry, **metadata: object) -> None:
        self.failures = 0
        self._telemetry = telemetry
        self._about: dict[str, object] = {"duty": duty, **metadata}
        self._began_at = 0.0

    def failed(self, error: BaseException) -> None:
        """Note one more failure."""
        self.failures += 1
        if self.failures == 1:
            self._began_at = self._telemetry.clock.monotonic()
        self._telemetry.emit(
            Event(
                name="outage.began" if self.failures == 1 else "outage.lasts",
                level="error" if self.failures == 1 else "debug",
                error=error,
                measurements={"failures": self.failures},
                metadata=self._about,
            )
        )

    def ended(self) -> None:
        """Note that the duty works; cheap and silent when it did before."""
        if not self.failures:
            return
        seconds = self._telemetry.clock.monotonic() - self._began_at
        measurements = {"failures": self.failures, "seconds": seconds}
        self.failures = 0
        self._telemetry.emit(
            Event(name="outage.ended", measurements=measurements, metadata=self._about)
        )
