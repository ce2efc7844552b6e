"""The times of a day: seconds since midnight, in order.

Hours x minutes x seconds may be 86,400 times, so they are never written out as a whole: minutes of
the day and seconds of the minute are kept apart, and the n-th time is found by a division.
"""

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Protocol


class DayTimes(Protocol):
    """The sorted times of a day, by their number from zero."""

    size: int

    def at(self, index: int) -> int:
        """The time of that number."""
        ...

    def through(self, second: int) -> int:
        """How many are not later than a second; also the number of the first later one."""
        ...

    def span(self, first: int, after: int) -> list[int]:
        """The times with the numbers [first, after)."""
        ...


class ClockTimes:
    """Every second of some seconds in every one of some minutes of the day."""

    __slots__ = ("minutes", "seconds", "size")

    def __init__(self, minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self.minutes = minutes
        self.seconds = seconds
        self.size = len(minutes) * len(seconds)

    def at(self, index: int) -> int:
        """The time of that number."""
        minute, second = divmod(index, len(self.seconds))
        return self.minutes[minute] * 60 + self.seconds[second]

    def through(self, second: int) -> int:
        """How many are not later than a second; also the number of the first later one."""
        minute, second = divmod(second, 60)
        index = bisect_left(self.minutes, minute)
        total = index * len(self.seconds)
        if index < len(self.minutes) and self.minutes[index] == minute:
            total += bisect_right(self.seconds, second)
        return total

    def span(self, first: int, after: int) -> list[int]:
        """The times with the numbers [first, after)."""
        if after <= first:
            return []
        width = len(self.seconds)
        low, high = first // width, (after - 1) // width + 1
        found = [
            minute * 60 + second for minute in self.minutes[low:high] for second in self.seconds
        ]
        begin = first - low * width
        return found[begin : begin + after - first]


class ListedTimes:
    """Times that were picked one by one."""

    __slots__ = ("_times", "size")

    def __init__(self, times: tuple[int, ...]) -> None:
        self._times = times
        self.size = len(times)

    def at(self, index: int) -> int:
        """The time of that number."""
        return self._times[index]

    def through(self, second: int) -> int:
        """How many are not later than a second; also the number of the first later one."""
        return bisect_right(self._times, second)

    def span(self, first: int, after: int) -> list[int]:
        """The times with the numbers [first, after)."""
        return list(self._times[first:after])


@lru_cache(maxsize=4096)
def minutes_of_day(hours: tuple[int, ...], minutes: tuple[int, ...]) -> tuple[int, ...]:
    """Every minute of the day with these hours and minutes; shared by schedules with the same."""
    return tuple(hour * 60 + minute for hour in hours for minute in minutes)


def picked(places: tuple[int, ...], size: int) -> list[int]:
    """The numbers from zero that BYSETPOS picks out of so many, in order and once each."""
    indexes = {place - 1 if place > 0 else size + place for place in places}
    return sorted(index for index in indexes if 0 <= index < size)
