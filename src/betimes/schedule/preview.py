"""What a schedule will do, shown before it is saved."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from betimes.schedule.bounds import SECOND
from betimes.schedule.moment import instant_text, to_instant, to_local
from betimes.schedule.schedule import Schedule

COUNT_MAX = 1_000
SAMPLE_DAYS = 30
DROP_FLAGS = {
    "DST_GAP_SKIPPED": "dst_gap_skipped",
    "CALENDAR_EXCLUDED": "calendar_excluded",
}


def preview(
    schedule: Schedule, start: datetime, count: int = 10, horizon: datetime | None = None
) -> dict[str, Any]:
    """The answer of `POST /v1/schedules/preview`: plain JSON values.

    Occurrences are the next fires; what a gap or a calendar takes away among them is listed too,
    flagged as such, and does not count.
    """
    fires = list(schedule.fires(start, horizon, min(count, COUNT_MAX)))
    shown = [_occurrence(schedule, to_instant(fire.nominal), fire.flags) for fire in fires]
    if fires or horizon is not None:
        end = horizon if len(fires) < count and horizon is not None else fires[-1].nominal
        for drop in schedule.dropped(start, end, COUNT_MAX):
            if drop.code in DROP_FLAGS:
                flags = (DROP_FLAGS[drop.code],)
                entry = _occurrence(schedule, to_instant(drop.nominal), flags)
                shown.append({**entry, "local": drop.local})
    instants = [to_instant(fire.nominal) for fire in fires]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    month = schedule.count(start, start + timedelta(days=SAMPLE_DAYS))
    cron = schedule.built.cron
    return {
        "canonical": schedule.canonical,
        "dialect": None if cron is None else cron.dialect,
        "description": schedule.describe(),
        "occurrences": sorted(shown, key=lambda entry: str(entry["utc"])),
        "warnings": [
            {
                "code": warned.code,
                "at": None if warned.at is None else instant_text(to_instant(warned.at)),
                "detail": warned.detail,
            }
            for warned in schedule.warnings(start)
        ],
        "per_day": round(month / SAMPLE_DAYS, 3),
        "min_gap": min(gaps) / SECOND if gaps else None,
        "never": schedule.kind != "manual" and schedule.next(start) is None,
    }


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
