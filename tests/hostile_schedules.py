"""Hostile schedules of every kind from a seed, and the questions that a service asks of each.

Hostile means: large where a number may be large, rare where a date may be rare, many where there
may be many, and combined with what multiplies: calendars, limits, unions, zones that jump.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 -- from a seed, the same schedules every time

from betimes.domain.errors import Refused
from betimes.schedule import Budget, Catchup, Schedule, parse, plan_catchup, preview
from betimes.schedule.moment import to_instant

Members = dict[str, object]
NOW = datetime(2026, 11, 18, 3, 4, 5, tzinfo=UTC)
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe"),
    *("Africa/Casablanca", "Pacific/Apia", "America/Nuuk", "Asia/Kathmandu", "Antarctica/Troll"),
    *("America/Santiago", "Asia/Tehran", "Africa/Monrovia", "Pacific/Chatham", "Europe/Dublin"),
    *("Pacific/Kiritimati", "Asia/Pyongyang", "America/Havana", "Asia/Gaza", "Africa/Cairo"),
)
WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
PARTS = {
    "BYMONTH": (1, 12, False),
    "BYWEEKNO": (1, 53, True),
    "BYYEARDAY": (1, 366, True),
    "BYMONTHDAY": (1, 31, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
EVERY = 800
NUMBERS = (1, 2, 3, 5, 7, 11, 13, 24, 25, 59, 60, 61, 97, 100, 365, 1_001, 9_973, 86_399, 99_991)
WORDS = (
    *("every day at 9:00", "every weekday at 17:30 and 18:45", "every {n} minutes", "every {n}h"),
    *("on the 1st and the {n} of every month at noon", "every monday at 9am, 10am and 11:30"),
    *("the last weekday of the month at midnight", "in {n} days", "tomorrow at 9:00", "weekly"),
    *("every {n} seconds", "first day of the quarter at 6:00", "every year on february 29 at 0:30"),
)


def generate(kind: str, random: Random) -> Members:
    """One schedule of a kind, with whatever makes it worse."""
    found = KINDS[kind](random)
    if random.random() < 0.9:
        found.setdefault("timezone", random.choice(ZONES))
    return found | _more(random)


def schedules(seed: int, number: int) -> Iterator[tuple[str, Members]]:
    """So many schedules, every kind in turn; the same ones for the same seed."""
    kinds = list(KINDS)
    for index in range(number):
        kind = kinds[index % len(kinds)]
        yield kind, generate(kind, Random(f"{seed}/{index}"))


def _number(random: Random, most: int) -> int:
    return min(random.choice([*NUMBERS, most, random.randint(1, most)]), most)


def _when(random: Random) -> str:
    year = random.choice([1900, 1970, 1999, 2010, 2025, 2026, 2026, 2026, 2027, 2100, 2199])
    month, day = random.randint(1, 12), random.randint(1, 28)
    return f"{year}-{month:02}-{day:02}T{random.randint(0, 23):02}:{random.randint(0, 59):02}:00"


def _field(random: Random, low: int, high: int) -> str:
    value = random.randint(low, high)
    return random.choice(
        [
            "*",
            "*",
            str(value),
            f"*/{random.randint(1, high - low + 1)}",
            f"{value}-{high}",
            f"{low}-{value}/{random.randint(1, 7)}",
            ",".join(str(random.randint(low, high)) for _ in range(random.randint(1, 12))),
        ]
    )


def _cron(random: Random) -> Members:
    """All dialects, five to seven fields, rare dates, single years, hashes."""
    dialect = random.choice(["unix", "unix", "quartz", "aws"])
    low = 1 if dialect in {"quartz", "aws"} else 0
    minute, hour, month = _field(random, 0, 59), _field(random, 0, 23), _field(random, 1, 12)
    day = random.choice([_field(random, 1, 31), "29", "31", "L", "LW", "15W", "31W", "H", "*/30"])
    weekday = random.choice([_field(random, low, low + 6), "5#5", "1#1", "5L", "*", "H", "SUN-SAT"])
    if random.random() < 0.2:
        day, month, weekday = random.choice(
            [("29", "2", "*"), ("29", "2", "1"), ("31", "2", "1#5")]
        )
    year = random.choice([_field(random, 1970, 2199), "2199", "2096", "2000", "*/29", "*"])
    if dialect in {"quartz", "aws"}:
        if random.random() < 0.5:
            day = "?"
        else:
            weekday = "?"
    fields = [minute, hour, day, month, weekday]
    if dialect == "aws":
        fields.append(year)
    elif dialect == "quartz" or random.random() < 0.5:
        fields.insert(0, random.choice([_field(random, 0, 59), "*", "*", "59"]))
        if random.random() < 0.5:
            fields.append(year)
    found: Members = {"type": "cron", "expr": " ".join(fields), "dialect": dialect}
    if random.random() < 0.2:
        found["day_match"] = random.choice(["or", "and"])
    if random.random() < 0.1:
        found["wrap"] = True
    return found


def _list(random: Random, name: str) -> str:
    low, high, signed = PARTS[name]
    size = random.choice([1, 1, 2, 3, 7, 30, EVERY])
    numbers = [random.randint(low, high) for _ in range(size)]
    if size == EVERY:
        numbers = list(range(low, high + 1))
    return ",".join(str(-n if signed and random.random() < 0.4 else n) for n in numbers)


def _rule(random: Random, frequencies: tuple[str, ...] = FREQUENCIES) -> str:
    frequency = random.choice(frequencies)
    parts = [f"FREQ={frequency}"]
    if random.random() < 0.5:
        parts.append(f"INTERVAL={_number(random, 100_000)}")
    chosen = [name for name in PARTS if random.random() < 0.25]
    parts += [f"{name}={_list(random, name)}" for name in chosen]
    if random.random() < 0.3:
        numbered = frequency in {"MONTHLY", "YEARLY"} and random.random() < 0.6
        days = [
            f"{random.choice([1, 2, 5, -1, -5, 53, -53]) if numbered else ''}{day}"
            for day in random.sample(WEEKDAYS, random.randint(1, 7))
        ]
        if numbered and random.random() < 0.2:
            days = [f"{n}{day}" for n in range(-53, 54) if n for day in WEEKDAYS]
        parts.append(f"BYDAY={','.join(days)}")
    if random.random() < 0.1:
        parts.append(f"WKST={random.choice(WEEKDAYS)}")
    end = random.random()
    if end < 0.5:
        parts.append(f"COUNT={_number(random, 100_000)}")
    elif end < 0.6:
        parts.append(f"UNTIL={random.choice([1971, 2026, 2027, 2199])}1231T235959Z")
    return ";".join(parts)


def _stamp(random: Random) -> str:
    text = _when(random).replace("-", "").replace(":", "")
    return text if random.random() < 0.5 else f"{text}Z"


def _rrule(random: Random) -> Members:
    """A bare rule that counts from its anchor."""
    found: Members = {"type": "rrule", "expr": _rule(random)}
    if random.random() < 0.5:
        found["anchor"] = _when(random)
    return found


def _sub_daily(random: Random) -> Members:
    """What the review found: filtered rates with large counts."""
    expr = _rule(random, ("HOURLY", "MINUTELY", "SECONDLY"))
    return {"type": "rrule", "expr": expr, "anchor": _when(random)}


def _recurrence(random: Random) -> Members:
    """A rule with many dates added and taken away; DTSTART mostly fits, by being left out."""
    lines = [f"RRULE:{_rule(random)}"]
    for name in ("RDATE", "EXDATE"):
        if random.random() < 0.6:
            size = random.choice([1, 10, 100, 480])
            lines.append(f"{name}:{','.join(_stamp(random) for _ in range(size))}")
    if random.random() < 0.6:
        first = datetime(2026, 1, 1, tzinfo=UTC)
        size = random.choice([1, 10, 200, 490])
        step = random.choice([1, 1, 2, 7])
        days = [first + timedelta(days=step * index) for index in range(size)]
        lines.append(f"EXDATE;VALUE=DATE:{','.join(day.strftime('%Y%m%d') for day in days)}")
    if random.random() < 0.2:
        lines.insert(0, f"DTSTART;TZID={random.choice(ZONES)}:20260101T000000")
    return {"type": "rrule", "expr": "\n".join(lines), "anchor": _when(random)}


def _duration(random: Random) -> str:
    return random.choice(
        [
            f"P{random.choice([1, 2, 7, 30, 365, 73_000])}D",
            f"P{random.choice([1, 2, 5, 12, 13, 2_399])}M",
            f"P{random.choice([1, 4, 100, 199])}Y",
            f"P1DT{_number(random, 86_400)}S",
            f"P1M{random.randint(1, 40)}DT{random.randint(1, 40)}H",
            f"PT{_number(random, 10_000_000)}S",
            f"PT{random.randint(1, 9)}.{random.randint(0, 999):03}S",
            f"P{random.randint(1, 9)}W",
        ]
    )


def _interval(random: Random) -> Members:
    """Rates and calendar periods from anchors near and far."""
    found: Members = {"type": "interval", "every": _duration(random)}
    if random.random() < 0.8:
        found["anchor"] = _when(random)
    if random.random() < 0.3:
        found["month_end"] = random.choice(["clamp", "skip"])
    if random.random() < 0.1:
        found["mode"] = "fixed_delay"
    return found


def _iso8601(random: Random) -> Members:
    count = random.choice(["", "", "1", "100", "999999999"])
    end = f"/{_when(random)}" if random.random() < 0.3 else ""
    return {"type": "iso8601", "expr": f"R{count}/{_when(random)}/{_duration(random)}{end}"}


def _text(random: Random) -> Members:
    words = random.choice(WORDS).format(n=random.randint(1, 99))
    if random.random() < 0.1:
        words = " and ".join([words] * random.randint(2, 6))
    return {"type": "text", "expr": words[:400], "accept_first": random.random() < 0.5}


def _once(random: Random) -> Members:
    if random.random() < 0.3:
        return {"type": "delay", "after": _duration(random)}
    return {"type": "once", "at": _when(random)}


def _shorthand(random: Random) -> Members:
    """Nothing but brackets, stars and long runs of what a pattern may stumble over."""
    atoms = (
        "*",
        "/",
        ",",
        "-",
        "1",
        "0-59",
        " ",
        "a",
        "every ",
        "P1D",
        "R/",
        "(",
        "at 9 and ",
        ";",
    )
    text = "".join(random.choice(atoms) for _ in range(random.choice([10, 60, 250])))
    kind = random.choice(["cron", "text", "rrule", "iso8601"])
    return {"type": kind, "expr": text}


def _union(random: Random, depth: int = 0) -> Members:
    """Up to 32 members, also unions of unions."""
    size = random.choice([2, 3, 8, 32] if depth == 0 else [2, 3])
    makers = [_cron, _rrule, _interval, _iso8601, _sub_daily, _recurrence]
    of: list[object] = []
    for _ in range(size):
        if depth < 3 and random.random() < 0.1:
            of.append(_union(random, depth + 1))
        else:
            member = random.choice(makers)(random)
            if member["type"] == "interval":
                member.setdefault("anchor", _when(random))
            of.append(member | (_more(random) if random.random() < 0.1 else {}))
    return {"type": "union", "of": of}


def _calendars(random: Random) -> Members:
    def dates(size: int) -> list[str]:
        if random.random() < 0.3:
            return [f"{year}-01-01/{year}-12-30" for year in range(1970, 1970 + min(size, 230))]
        first = datetime(random.choice([1970, 2026]), 1, 1, tzinfo=UTC)
        step = random.choice([1, 2, 3])
        return [(first + timedelta(days=step * i)).date().isoformat() for i in range(size)]

    def calendar() -> Members:
        size = random.choice([0, 1, 10, 365, 2_000])
        names = random.sample(DAY_NAMES, random.randint(0, 6))
        return {"name": "x", "dates": dates(size), "weekdays": names}

    side = random.choice(["include", "exclude", "exclude"])
    found: Members = {side: [calendar() for _ in range(random.choice([1, 1, 2, 5]))]}
    if random.random() < 0.6:
        found["roll"] = random.choice(["none", "previous", "next", "nearest"])
    return found


def _calendared(random: Random) -> Members:
    """Dense and rare schedules kept to, or away from, calendars; some roll."""
    dense: list[Members] = [
        {"type": "cron", "expr": "* * * * * *"},
        {"type": "cron", "expr": "*/5 * * * *"},
        {"type": "cron", "expr": "30 2 * * 6"},
        {"type": "interval", "every": 1, "anchor": "2026-01-01T00:00:00Z"},
        {"type": "interval", "every": "P1D", "anchor": "2026-01-01T02:30:00"},
        {"type": "rrule", "expr": "FREQ=SECONDLY;BYMINUTE=1", "anchor": "2026-01-01T00:00:00"},
    ]
    base = random.choice([*dense, _cron(random), _rrule(random), _interval(random)])
    return {**base, "calendars": _calendars(random)}


def _limited(random: Random) -> Members:
    """Limits that must be counted: max_fires up to its maximum, far starts and ends."""
    base = random.choice([_cron, _rrule, _sub_daily, _interval, _calendared])(random)
    return {**base, "max_fires": _number(random, 1_000_000_000), "start_at": _when(random)}


def _more(random: Random) -> Members:
    """What any kind may carry besides."""
    found: Members = {}
    if random.random() < 0.1:
        found["start_at"] = _when(random)
    if random.random() < 0.1:
        found["end_at"] = _when(random)
    if random.random() < 0.1:
        found["max_fires"] = _number(random, 1_000_000_000)
    if random.random() < 0.1:
        found["calendars"] = _calendars(random)
    if random.random() < 0.1:
        found["jitter"] = random.choice(["PT1S", "PT1H", "P1D"])
    if random.random() < 0.1:
        found["window"] = "PT15M"
    if random.random() < 0.3:
        found["dst"] = {
            "gap": random.choice(["next", "skip", "shift"]),
            "overlap": random.choice(["first", "second", "both"]),
        }
    return found


KINDS: Mapping[str, Callable[[Random], Members]] = {
    "cron": _cron,
    "rrule": _rrule,
    "rrule sub-daily": _sub_daily,
    "rrule with dates": _recurrence,
    "interval": _interval,
    "iso8601": _iso8601,
    "text": _text,
    "once and delay": _once,
    "union": _union,
    "calendars": _calendared,
    "limits": _limited,
    "noise": _shorthand,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one schedule: `refusal` is a code, empty when it was answered."""

    steps: int
    refusal: str


def ask_all(members: Members, budget: Budget, shown: int = 50) -> Asked:
    """Everything that a service asks of a schedule, on one budget.

    Reading, the next fire, a preview with its warnings, counts over a day, a year and all time, the
    newest of an outage, text.
    """
    try:
        schedule = parse(members, now=NOW, seed="job", timezone="UTC", budget=budget)
        _ask(schedule, budget, shown)
    except Refused as refused:
        return Asked(budget.spent, refused.code)
    return Asked(budget.spent, "")


def _ask(schedule: Schedule, budget: Budget, shown: int) -> None:
    schedule.next(NOW, budget=budget)
    preview(schedule, NOW, shown, budget=budget)
    for days in (1, 366, 20_000):
        schedule.count(NOW, NOW + timedelta(days=days), budget=budget)
    schedule.instants(to_instant(NOW), to_instant(NOW + timedelta(minutes=5)), 1_000, budget=budget)
    plan_catchup(schedule, NOW - timedelta(days=3), NOW, Catchup("all", max=20), budget=budget)
    _ = schedule.canonical, schedule.describe(), schedule.key
    Schedule.from_dict(schedule.to_dict(), seed="job", budget=budget)
