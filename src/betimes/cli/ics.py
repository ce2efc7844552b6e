"""`betimes export --format ics`: the fires ahead, for a calendar."""

from datetime import datetime, timedelta
from typing import Any

from betimes.cli.command import Talk
from betimes.cli.progress import Progress
from betimes.cli.surface import OFFERS
from betimes.cli.times import moment_of
from betimes.importers.ics import Plan, write_ics

FIRES_MAX = 1000


def calendar_of(
    talk: Talk, group: str | None, tags: tuple[str, ...], *, days: int
) -> tuple[str, int, list[tuple[str, str]]]:
    """The text, how many jobs it tells of, and what could not be told with its reason."""
    now = talk.now
    query = {"group": group, "tag": list(tags)}
    jobs = list(talk.session.rows(OFFERS["jobs.list"], query=query, most=None))
    plans: list[Plan] = []
    refused: list[tuple[str, str]] = []
    progress = Progress("export", quiet=bool(talk.wishes.quiet))
    for number, job in enumerate(jobs, 1):
        name = str(job.get("name") or job["id"])
        found = plan_of(talk, job, name, now, days=days)
        if isinstance(found, str):
            refused.append((name, found))
        else:
            plans.append(found)
        progress.tell(number, len(jobs))
    progress.end()
    return write_ics(plans, stamp=now), len(plans), refused


def plan_of(talk: Talk, job: dict[str, Any], name: str, now: datetime, *, days: int) -> Plan | str:
    """What a job does in the days ahead, as the service says; or why that cannot be told."""
    state = job["status"]["state"]
    if state != "active":
        return f"it is {state.replace('_', ' ')} and fires not"
    span = {"count": FIRES_MAX, "to": (now + timedelta(days=days)).isoformat()}
    told = talk.session.call(OFFERS["jobs.next"], {"job": job["id"]}, query=span)
    fires = [one for fire in told["occurrences"] if (one := moment_of(fire["utc"])) is not None]
    if len(fires) == FIRES_MAX:
        return f"it fires {FIRES_MAX:,} times or more in {days} days; say fewer --days"
    return Plan(id=job["id"], name=name, says=job["schedule_text"], fires=fires)
