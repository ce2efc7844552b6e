"""What the verbs need to know about a schedule, and nothing else."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID


class Fire(Protocol):
    """One occurrence: its nominal time, and when it is really due (jitter, spread)."""

    @property
    def nominal(self) -> datetime:
        """The fire time; together with the job it is the identity of the run."""
        ...

    @property
    def effective(self) -> datetime:
        """When the run is due."""
        ...


class Timetable(Protocol):
    """A schedule that was read: a pure function from an instant to the fires after it."""

    def fires(
        self, after: datetime, until: datetime | None = None, limit: int | None = None
    ) -> Iterator[Fire]:
        """Fires strictly after `after`, not after `until`, in the order of their nominal times."""
        ...


ReadSchedule = Callable[[Mapping[str, Any], UUID], Timetable]
"""From a stored schedule and the id of its job to a timetable; raises `BadSchedule`."""
