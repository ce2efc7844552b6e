"""A second implementation of cron, as dumb as it can be: it walks the clock and looks.

It shares no code with the package: its own field reader, the standard library's `zoneinfo` over the
same zone data, and a loop over every minute (or second).
"""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

RANGES = {
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "day": (1, 31),
    "month": (1, 12),
    "weekday": (0, 6),
    "year": (1970, 2199),
}
NAMES = {
    "month": ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    "weekday": ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
}
LAYOUTS = {
    5: ["minute", "hour", "day", "month", "weekday"],
    6: ["second", "minute", "hour", "day", "month", "weekday"],
    7: ["second", "minute", "hour", "day", "month", "weekday", "year"],
}


@cache
def zone_info(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


class DumbCron:
    def __init__(self, expression: str) -> None:
        texts = expression.split()
        self.fields = dict(zip(LAYOUTS[len(texts)], texts, strict=True))
        self.step = timedelta(seconds=1) if "second" in self.fields else timedelta(minutes=1)
        self.wild = any(
            self.fields.get(name, "0")[0] == "*" for name in ("second", "minute", "hour")
        )

    def value(self, name: str, text: str) -> int:
        names = NAMES.get(name, [])
        if text in names:
            return names.index(text) + RANGES[name][0]
        return int(text)

    @cache  # noqa: B019 -- lives as long as a test
    def plain(self, name: str) -> frozenset[int]:
        found: set[int] = set()
        low, high = RANGES[name]
        for term in self.fields.get(name, "0" if name == "second" else "*").split(","):
            if any(mark in term for mark in "LW#") and term not in NAMES.get(name, []):
                continue
            body, _, step = term.partition("/")
            first, dash, last = body.partition("-")
            if body in ("*", "?"):
                values = range(low, high + 1)
            elif dash:
                end = self.value(name, last)
                begin = self.value(name, first)
                values = range(begin, (7 if last == "SUN" and begin else end) + 1)
            else:
                begin = self.value(name, first)
                values = range(begin, (max(high, begin) if step else begin) + 1)
            found.update(list(values)[:: int(step or 1)])
        if name == "weekday":
            found = {value % 7 for value in found}
        return frozenset(found)

    def matches(self, local: datetime) -> bool:
        return (
            local.second in self.plain("second")
            and local.minute in self.plain("minute")
            and local.hour in self.plain("hour")
            and local.month in self.plain("month")
            and local.year in self.plain("year")
            and self.day_matches(local)
        )

    def day_matches(self, local: datetime) -> bool:
        by_month, by_week = self.by_month(local), self.by_week(local)
        if self.fields["day"] in "*?" or self.fields["weekday"] in "*?":
            return by_month and by_week
        return by_month or by_week

    def by_month(self, local: datetime) -> bool:
        length = monthrange(local.year, local.month)[1]
        if local.day in self.plain("day"):
            return True
        for term in self.fields["day"].split(","):
            if term == "L" and local.day == length:
                return True
            if term == "LW" and local.day == self.nearest(local, length):
                return True
            if term.endswith("W") and term[:-1].isdigit():
                wanted = int(term[:-1])
                if wanted <= length and local.day == self.nearest(local, wanted):
                    return True
        return False

    def nearest(self, local: datetime, wanted: int) -> int:
        """Of the working days of the month, the one with the least distance; the earlier first."""
        length = monthrange(local.year, local.month)[1]
        working = [d for d in range(1, length + 1) if local.replace(day=d).weekday() < 5]
        return min(working, key=lambda day: (abs(day - wanted), day))

    def by_week(self, local: datetime) -> bool:
        weekday = local.isoweekday() % 7
        if weekday in self.plain("weekday"):
            return True
        length = monthrange(local.year, local.month)[1]
        for term in self.fields["weekday"].split(","):
            is_last = term.endswith("#L") or (term.endswith("L") and "#" not in term)
            if is_last and term not in NAMES["weekday"]:
                name = term.removesuffix("L").removesuffix("#")
                if self.value("weekday", name) % 7 == weekday and local.day + 7 > length:
                    return True
            elif "#" in term:
                name, _, number = term.partition("#")
                if self.value("weekday", name) % 7 == weekday and (local.day - 1) // 7 + 1 == int(
                    number
                ):
                    return True
        return False

    def fires(
        self, zone: str, after: datetime, until: datetime, dst: dict[str, str] | None = None
    ) -> list[datetime]:
        """Every fire in (after, until], by walking."""
        info = zone_info(zone)
        gap = (dst or {}).get("gap") or ("skip" if self.wild else "next")
        overlap = (dst or {}).get("overlap") or ("both" if self.wild else "first")
        if (gap, overlap) == ("skip", "both"):
            return self.by_real_time(info, after, until)
        found: set[datetime] = set()
        local = after.astimezone(info).replace(tzinfo=None, second=0) - timedelta(days=2)
        end = until.astimezone(info).replace(tzinfo=None) + timedelta(days=2)
        while local <= end:
            if self.matches(local):
                found.update(self.place(local, info, gap, overlap))
            local += self.step
        return sorted(fire for fire in found if after < fire <= until)

    def by_real_time(self, info: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
        """Every instant whose wall clock reads a match. Offsets are whole minutes since 1972."""
        found = []
        instant = after.replace(second=0, microsecond=0)
        while instant <= until:
            if instant > after and self.matches(instant.astimezone(info).replace(tzinfo=None)):
                found.append(instant)
            instant += self.step
        return found

    def place(self, local: datetime, info: ZoneInfo, gap: str, overlap: str) -> list[datetime]:
        passes = [local.replace(tzinfo=info, fold=fold) for fold in (0, 1)]
        real = sorted(
            {
                p.astimezone(UTC)
                for p in passes
                if p.astimezone(UTC).astimezone(info).replace(tzinfo=None) == local
            }
        )
        if real:
            return {"first": real[:1], "second": real[-1:], "both": real}[overlap]
        before, after = (p.utcoffset() for p in passes)
        assert before is not None
        assert after is not None
        if after - before >= timedelta(days=1) or gap == "skip":
            return []
        if gap == "shift":
            return [(local - before).replace(tzinfo=UTC)]
        while True:  # walk on to the first local time that exists again
            local += timedelta(seconds=1) if self.step.seconds == 1 else timedelta(minutes=1)
            there = local.replace(tzinfo=info).astimezone(UTC)
            if there.astimezone(info).replace(tzinfo=None) == local:
                return [there]
