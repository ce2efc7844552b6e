"""The time mathematics beside its peers, in one process.

Each library computes the next fire of the same expressions from the same start times, its parsing
left out (each is given its expression once, then asked many times). The rounds take turns, so that
a noisy moment hits everybody. Then the planner's memoised path over many schedules and few
specifications.

One JSON line for each figure on stdout; the table goes to stderr.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from statistics import median
from time import perf_counter
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim

from betimes.schedule import FireTable, Schedule, parse, tzdata_release
from betimes.schedule.moment import to_instant

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "*/15 9-17 * * MON-FRI",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "0 0 1 * *",
    "15,45 8-18/2 * * 1-5",
    "0 12 * * 0",
    "0 0 1,15 * *",
    "5 4 1 1 *",
    "0 22 * 6-8 FRI",
    "0 0 L * *",
    "0 12 * * MON#1",
    "0 0 29 2 *",
)
START = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
Ask = Callable[[datetime], object]
Maker = Callable[[str, str], Ask]


def ours(expression: str, zone: str) -> Ask:
    """Betimes, through its public method, a whole `Fire` for each question."""
    return parse(expression, timezone=zone).next


def by_croniter(expression: str, zone: str) -> Ask:
    """Croniter, its iterator set anew for each question."""
    info = ZoneInfo(zone)
    iterator = croniter(expression, START.astimezone(info))

    def ask(after: datetime) -> object:
        return iterator.get_next(datetime, start_time=after.astimezone(info))

    return ask


def by_cronsim(expression: str, zone: str) -> Ask:
    """CronSim, its clock set by hand for each question, which spares it the parsing."""
    info = ZoneInfo(zone)
    simulator = CronSim(expression, START.astimezone(info))

    def ask(after: datetime) -> object:
        local = after.astimezone(info)
        simulator.dt = local.replace(second=0, microsecond=0, tzinfo=simulator.dt.tzinfo)
        if simulator.fixup_tz is not None:
            simulator.dt = simulator.dt.replace(tzinfo=None)
        return next(simulator)

    return ask


def by_apscheduler(expression: str, zone: str) -> Ask:
    """APScheduler's trigger; it has neither L nor #."""
    trigger = CronTrigger.from_crontab(expression, ZoneInfo(zone))
    return lambda after: trigger.get_next_fire_time(None, after)


LIBRARIES: dict[str, Maker] = {
    "betimes": ours,
    "cronsim": by_cronsim,
    "croniter": by_croniter,
    "apscheduler": by_apscheduler,
}


def main(arguments: list[str]) -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="bench time", description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--starts", type=int, default=40, help="start times for each expression")
    options.add_argument("--schedules", type=int, default=100_000)
    options.add_argument("--specs", type=int, default=1_000)
    options.add_argument("--quick", action="store_true", help="one small round")
    chosen = options.parse_args(arguments)
    if chosen.quick:
        chosen.rounds, chosen.starts, chosen.schedules, chosen.specs = 1, 2, 50, 5
    print(
        f"tzdata {tzdata_release()}, {len(EXPRESSIONS)} expressions x {len(ZONES)} zones x "
        f"{chosen.starts} start times, {chosen.rounds} rounds",
        file=sys.stderr,
    )
    rates = next_fires(chosen.rounds, chosen.starts)
    report_ratios(rates)
    report_planner(chosen.schedules, chosen.specs, chosen.rounds)
    return 0


def next_fires(rounds: int, starts: int) -> dict[str, float]:
    """Questions answered in a second by each library, the median of all rounds."""
    moments = [START + timedelta(hours=53 * index, minutes=7 * index) for index in range(starts)]
    asks = {name: questions(make) for name, make in LIBRARIES.items()}
    taken: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    for _ in range(rounds):
        for name, questioned in asks.items():
            begin = perf_counter()
            for ask in questioned:
                for moment in moments:
                    ask(moment)
            taken[name].append((perf_counter() - begin) / (len(questioned) * len(moments)))
    for name, seconds in taken.items():
        emit(
            "next_fire",
            library=name,
            version=version(name),
            asked=len(asks[name]) * starts,
            microseconds=round(median(seconds) * 1e6, 2),
            per_second=round(1 / median(seconds)),
        )
    return {name: 1 / median(seconds) for name, seconds in taken.items()}


def questions(make: Maker) -> list[Ask]:
    """One question for each expression and zone that the library understands and can answer."""
    found = []
    for expression in EXPRESSIONS:
        for zone in ZONES:
            try:
                ask = make(expression, zone)
                ask(START)
            except Exception as problem:  # noqa: BLE001 -- a peer may refuse in any way it likes
                print(f"left out: {expression} in {zone}: {problem}", file=sys.stderr)
                continue
            found.append(ask)
    return found


def report_ratios(rates: dict[str, float]) -> None:
    """How many times as fast as each peer."""
    print(f"{'library':<14}{'next/s':>12}{'betimes is':>14}", file=sys.stderr)
    for name, rate in rates.items():
        ratio = rates["betimes"] / rate
        print(f"{name:<14}{rate:>12,.0f}{ratio:>12.1f} x", file=sys.stderr)
        if name != "betimes":
            emit("ratio", over=name, times=round(ratio, 2))


def report_planner(schedules: int, specs: int, rounds: int) -> None:
    """Fires handed out in a second by the memoised path, a fresh window each round."""
    shared = [spec(index) for index in range(specs)]
    jobs = [shared[index % specs] for index in range(schedules)]
    horizon = 300 * 1_000_000
    after = to_instant(START)
    best: list[float] = []
    for number in range(rounds):
        table = FireTable()
        begin = perf_counter()
        window = table.window(after + number * horizon, after + (number + 1) * horizon)
        total = 0
        for job in jobs:
            total += len(window.fires(job))
        best.append(total / (perf_counter() - begin))
    emit(
        "planner",
        schedules=schedules,
        specs=specs,
        window_seconds=300,
        fires=total,
        fires_per_second=round(median(best)),
    )
    print(
        f"planner: {median(best):,.0f} fires/s ({schedules:,} schedules, {specs:,} specs, "
        f"{total:,} fires in a window of 5 minutes)",
        file=sys.stderr,
    )


def spec(index: int) -> Schedule:
    """One of many specifications: every minute to every hour, in several zones."""
    zone = ZONES[index % len(ZONES)]
    minute = index % 60
    forms = ("* * * * *", "*/2 * * * *", f"{minute}/5 * * * *", f"{minute} * * * *")
    return parse(
        {
            "type": "cron",
            "expr": forms[index % 4],
            "timezone": zone,
            "max_fires": 10**9 - index,
            "start_at": "2025-01-01T00:00:00Z",
        }
    )


def emit(figure: str, **values: object) -> None:
    """One JSON line."""
    print(json.dumps({"figure": figure, **values}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
