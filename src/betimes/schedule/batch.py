"""The planner's path: many jobs, few specifications, one window at a time.

A hundred thousand jobs share a thousand specifications. For one window the fires of each
specification are computed once and handed out as one shared tuple.
"""

import json
from collections import OrderedDict
from threading import Lock

from betimes.domain.errors import BadSchedule
from betimes.domain.kept import Kept
from betimes.schedule.bounds import FIRES_MAX
from betimes.schedule.budget import Budget
from betimes.schedule.schedule import Schedule

SCHEDULES_BYTES_MAX = 64 << 20
SCHEDULE_BYTES, SCHEDULE_FACTOR = 1_000, 30
"""What a schedule takes: about so much, and so many times its text."""

SPECS_MAX = 200_000
WINDOWS_MAX = 8
NOTHING: tuple[int, ...] = ()


class Window:
    """The fires of many schedules in (after, until], in microseconds.

    `fires` and `following` cost one look-up for every schedule after the first of its kind.
    A tuple of `fires_max` fires may be cut short: ask again from its last one.
    """

    __slots__ = ("_fires", "_following", "_specs_max", "after", "fires_max", "until")

    def __init__(
        self, after: int, until: int, *, fires_max: int = FIRES_MAX, specs_max: int = SPECS_MAX
    ) -> None:
        self.after = after
        self.until = until
        self.fires_max = fires_max
        self._specs_max = specs_max
        self._fires: dict[str, tuple[int, ...]] = {}
        self._following: dict[str, int | None] = {}

    def fires(self, schedule: Schedule) -> tuple[int, ...]:
        """The nominal fires of a schedule in the window."""
        found = self._fires.get(schedule.key)
        if found is None:
            found = tuple(schedule.instants(self.after, self.until, self.fires_max)) or NOTHING
            if len(self._fires) >= self._specs_max:
                self._fires.clear()
            self._fires[schedule.key] = found
        return found

    def following(self, schedule: Schedule) -> int | None:
        """The first fire after the window: where the job sleeps until."""
        key = schedule.key
        if key not in self._following:
            if len(self._following) >= self._specs_max:
                self._following.clear()
            self._following[key] = schedule.next_instant(self.until)
        return self._following[key]


class FireTable:
    """Windows by their bounds, the most recently used few of them."""

    def __init__(self, *, windows_max: int = WINDOWS_MAX, fires_max: int = FIRES_MAX) -> None:
        self._windows_max = windows_max
        self._fires_max = fires_max
        self._windows: OrderedDict[tuple[int, int], Window] = OrderedDict()

    def window(self, after: int, until: int) -> Window:
        """The memo of one window."""
        found = self._windows.get((after, until))
        if found is None:
            found = self._windows[after, until] = Window(after, until, fires_max=self._fires_max)
            if len(self._windows) > self._windows_max:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end((after, until))
        return found

    def fires_between(self, schedule: Schedule, after: int, until: int) -> tuple[int, ...]:
        """The nominal fires of a schedule in (after, until]."""
        return self.window(after, until).fires(schedule)


def _weight_of(stored: str) -> int:
    """About how many bytes a schedule takes that was read from a text, with the text."""
    return SCHEDULE_BYTES + SCHEDULE_FACTOR * len(stored)


class ScheduleCache:
    """Stored forms read once: equal JSON texts share one `Schedule`.

    A shared schedule carries the seed of nobody: give the job's own to `effective`. Only a cron
    with `H` is kept apart for each seed.
    """

    def __init__(self, size_max: int = 10_000, *, bytes_max: int = SCHEDULES_BYTES_MAX) -> None:
        self._shared: Kept[tuple[str, str], Schedule] = Kept(bytes_max, entries=size_max)
        # What is expensive is evaluated in a thread beside the event loop.
        self._lock = Lock()

    def get(self, stored: str, seed: str = "", *, budget: Budget | None = None) -> Schedule:
        """The schedule of a stored JSON text; reading one that is not known costs steps."""
        with self._lock:
            for key in ((stored, ""), (stored, seed)):
                found = self._shared.get(key)
                if found is not None and (key[1] or not found.is_seeded or not seed):
                    return found
        members = json.loads(stored)
        if not isinstance(members, dict):
            raise BadSchedule("expected a stored schedule as an object")
        budget = budget or Budget()
        schedule = Schedule.from_dict(members, budget=budget)
        key = (stored, "")
        if schedule.is_seeded:
            schedule = Schedule.from_dict(members, seed=seed, budget=budget)
            key = (stored, seed)
        with self._lock:
            return self._shared.put(key, schedule, _weight_of(stored))

    def __len__(self) -> int:
        return len(self._shared)
