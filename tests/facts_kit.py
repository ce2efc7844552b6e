"""Small helpers for tables of wall-clock facts."""

from datetime import UTC, datetime

from betimes.schedule import Schedule, fire_times, parse, zone
from betimes.schedule.moment import to_local


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(moments: list[datetime], name: str) -> list[str]:
    """Moments as `29 03:00+0200` in a zone."""
    where = zone(name)
    shown = [to_local(int(moment.timestamp()) * 1_000_000, where) for moment in moments]
    return [moment.strftime("%d %H:%M%z") for moment in shown]


def cron(
    expression: str,
    name: str,
    start: str,
    count: int,
    dst: dict[str, str] | None = None,
    dialect: str = "unix",
) -> list[str]:
    """The next fires of a cron expression as the wall clock shows them."""
    return wall(fire_times(expression, name, utc(start), count, dst=dst, dialect=dialect), name)


def days(expression: str, start: str, count: int, dialect: str = "unix") -> list[str]:
    """The next fires of a cron expression in UTC, as dates."""
    found = fire_times(expression, "UTC", utc(start), count, dialect=dialect)
    return [moment.strftime("%Y-%m-%d") for moment in found]


def flagged(schedule: Schedule, start: str, count: int) -> list[tuple[str, ...]]:
    return [fire.flags for fire in schedule.fires(utc(start), limit=count)]


__all__ = ["cron", "days", "fire_times", "flagged", "parse", "utc", "wall"]
