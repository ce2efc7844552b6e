"""What a schedule will do, shown before it is saved."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from betimes.schedule.bounds import SECOND
from betimes.schedule.budget import Budget
from betimes.schedule.fire import Drop, Fire
from betimes.schedule.moment import instant_text, to_instant, to_local
from betimes.schedule.schedule import Schedule

COUNT_MAX = 1_000
SAMPLE_DAYS = 30
SHOWN_STEPS = 4
"""What showing a fire costs."""

DROP_FLAGS = {
    "DST_GAP_SKIPPED": "dst_gap_skipped",
    "CALENDAR_EXCLUDED": "calendar_excluded",
}


def preview(
    schedule: Schedule,
    start: datetime,
    count: int = 10,
    horizon: datetime | None = None,
    *,
    excluded: bool = True,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """The answer of `POST /v1/schedules/preview`: plain JSON values.

    Occurrences are the next fires. What a gap or a calendar takes away among them is listed too if
    wanted, flagged as such and at most `count` times more; `excluded` says how much it is.
    """
    budget = budget or Budget()
    most = min(count, COUNT_MAX)
    fires = list(schedule.fires(start, horizon, most, budget=budget))
    budget.spend(SHOWN_STEPS * len(fires))
    shown = [_occurrence(schedule, to_instant(fire.nominal), fire.flags) for fire in fires]
    taken = _taken(schedule, start, fires, horizon if len(fires) < count else None, budget)
    budget.spend(SHOWN_STEPS * len(taken[:most]) if excluded else 0)
    for drop in taken[:most] if excluded else ():
        entry = _occurrence(schedule, to_instant(drop.nominal), (DROP_FLAGS[drop.code],))
        shown.append({**entry, "local": drop.local})
    instants = [to_instant(fire.nominal) for fire in fires]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    month = schedule.count(start, start + timedelta(days=SAMPLE_DAYS), budget=budget)
    cron = schedule.built.cron
    return {
        "canonical": schedule.canonical,
        "dialect": None if cron is None else cron.dialect,
        "description": schedule.describe(),
        "occurrences": sorted(shown, key=lambda entry: str(entry["utc"])),
        "excluded": len(taken),
        "warnings": [
            {
                "code": warned.code,
                "at": None if warned.at is None else instant_text(to_instant(warned.at)),
                "detail": warned.detail,
            }
            for warned in schedule.warnings(start, budget=budget)
        ],
        "per_day": round(month / SAMPLE_DAYS, 3),
        "min_gap": min(gaps) / SECOND if gaps else None,
        "never": schedule.kind != "manual"
        and schedule.next_instant(to_instant(start), budget=budget) is None,
    }


def _taken(
    schedule: Schedule,
    start: datetime,
    fires: Sequence[Fire],
    horizon: datetime | None,
    budget: Budget,
) -> list[Drop]:
    """What was taken away up to the last fire that is shown, or up to the horizon."""
    end = horizon if horizon is not None else fires[-1].nominal if fires else None
    if end is None:
        return []
    dropped = schedule.dropped(start, end, COUNT_MAX, budget=budget)
    return [drop for drop in dropped if drop.code in DROP_FLAGS]


def _occurrence(schedule: Schedule, instant: int, flags: tuple[str, ...]) -> dict[str, Any]:
    local = to_local(instant, schedule.zone)
    return {
        "utc": instant_text(instant),
        "local": local.strftime("%Y-%m-%dT%H:%M:%S"),
        "offset": _offset(local),
        "flags": list(flags),
    }


def _offset(local: datetime) -> str:
    text = local.strftime("%z")
    return f"{text[:3]}:{text[3:5]}"
