"""Answers that read better as sentences than as tables: explanations, fires, forecasts. Pure."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from betimes.cli.looks import BOLD, RED, YELLOW, Eye, cell, clean, column, table
from betimes.cli.times import exact, moment_of

BAR_WIDTH = 30
HISTORY_MOST = 10
BUSY, FULL = 0.7, 1.0
SPARKS = " ▁▂▃▄▅▆▇█"
FLAGS = {
    "dst_gap_shifted": "the clock jumps over its time that day; moved",
    "dst_gap_skipped": "does not exist that day (clock jumps); skipped",
    "dst_overlap_first": "comes twice that day; this is the first",
    "dst_overlap_second": "comes twice that day; this is the second",
    "calendar_excluded": "excluded by a calendar",
    "jittered": "starts a little later (jitter)",
}


def painted(text: str, paint: str, eye: Eye) -> str:
    """Text in a colour, for eyes that see colours."""
    return f"\x1b[{paint}m{text}\x1b[0m" if eye.colours else text


def explanation(told: Mapping[str, Any], eye: Eye) -> str:
    """Why: the verdict, every reason with its fix, and what was decided before."""
    lines = [painted(clean(told["summary"]), BOLD, eye)]
    for reason in told["reasons"]:
        mark = painted(reason["code"], RED if reason["blocking"] else YELLOW, eye)
        since = moment_of(reason.get("since"))
        when = f"  (since {exact(since, eye.zone)})" if since else ""
        lines.append(f"  {mark}: {clean(reason['summary'])}{when}")
        if reason.get("fix"):
            lines.append(f"    Fix: {clean(reason['fix']['text'])}")
    if told.get("ahead"):
        least = "At least " if told.get("ahead_at_least") else ""
        lines.append(f"  {least}{told['ahead']} runs are ahead of it.")
    expected = moment_of(told.get("expected_at"))
    if expected is not None:
        lines.append(f"  Expected {exact(expected, eye.zone)}.")
    history = told.get("history", [])[:HISTORY_MOST]
    if history:
        lines.append("Decided before:")
        lines += [f"  {_time(one['at'], eye)}  {one['code']}: {clean(one['summary'])}"
                  for one in history]  # fmt: skip
    return "\n".join(lines) + "\n"


def _time(text: Any, eye: Eye) -> str:
    return cell(text, "time", eye)


def preview(told: Mapping[str, Any], eye: Eye) -> str:
    """What a schedule will do."""
    lines = [painted(clean(told["description"]), BOLD, eye)]
    for fire in told["occurrences"]:
        notes = "".join(f"   ! {FLAGS.get(flag, flag)}" for flag in fire["flags"])
        local = fire["local"].replace("T", " ")
        lines.append(f"  {local} {fire['offset']}   {_utc(fire['utc'])}{notes}")
    if not told["occurrences"]:
        lines.append("  never again")
    lines += [f"  ! {one['code']}: {clean(one['detail'])}" for one in told["warnings"]]
    return "\n".join(lines) + "\n"


def _utc(text: str) -> str:
    moment = moment_of(text)
    return text if moment is None else f"{moment:%H:%M:%S}Z"


def forecast(told: Mapping[str, Any], eye: Eye) -> str:
    """The load ahead as bars, with its hot spots and what would flatten them."""
    buckets = told["buckets"]
    most = max((bucket["fires"] for bucket in buckets), default=0) or 1
    rows = [{**bucket, "bar": bar(bucket["fires"] / most)} for bucket in buckets]
    columns = ["AT=at:time", "GROUP=group", "FIRES=fires", "LOAD=utilisation:share", "BAR=bar"]
    text = table(rows, [column(one) for one in columns], eye) if rows else "Nothing is ahead.\n"
    exactly = "" if told["exact"] else " (estimated)"
    text += f"{told['fires']:,.0f} fires{exactly}\n"
    for spot in told["hot_spots"]:
        text += painted(f"hot: {_time(spot['at'], eye)} {spot['fires']:,.0f} fires\n", RED, eye)
    for advice in told["advice"]:
        text += f"advice: {clean(advice['suggestion'])}\n"
    return text


def bar(share: float) -> str:
    """A bar between nothing and all of it."""
    return "█" * round(min(1.0, max(0.0, share)) * BAR_WIDTH) or "▏"


def spark(values: list[float]) -> str:
    """Numbers as a row of little columns."""
    most = max(values, default=0.0) or 1.0
    return "".join(SPARKS[round(value / most * (len(SPARKS) - 1))] for value in values)


def as_json(told: Any, _eye: Eye) -> str:
    """A value that somebody else made, as it is."""
    return told if isinstance(told, str) else json.dumps(told, indent=2, ensure_ascii=False) + "\n"


PRESENTERS: Mapping[str, Callable[[Any, Eye], str]] = {
    "jobs.explain": explanation,
    "runs.explain": explanation,
    "schedules.preview": preview,
    "jobs.next": preview,
    "forecast.read": forecast,
    "runs.payload": as_json,
    "runs.result": as_json,
}
