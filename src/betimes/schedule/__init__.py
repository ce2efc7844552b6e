"""When: pure functions from a specification, zone rules and an instant to fire times.

    schedule = parse("0 2 * * *", timezone="Europe/Stockholm", now=created_at, seed=job_id)
    schedule.next(after)            the first fire later than an instant
    schedule.fires(after, until)    all of them, in order
    schedule.dropped(after, until)  what DST or a calendar took away, with reason codes
    plan_catchup(schedule, …)       what to run after an outage, and what to record as skipped

Nothing here asks for the time, touches a file other than the pinned zone data, or rolls dice.
"""

from betimes.schedule.batch import FireTable, ScheduleCache, Window
from betimes.schedule.budget import Budget
from betimes.schedule.calendar import Calendar
from betimes.schedule.catchup import (
    NOTHING,
    Accounted,
    CatchupPlan,
    Skipped,
    last_undecided,
    left_of,
    plan_catchup,
)
from betimes.schedule.cautions import Warned
from betimes.schedule.fire import Drop, Fire
from betimes.schedule.icalendar import import_calendar
from betimes.schedule.line import line_of
from betimes.schedule.members import Catchup, read_catchup
from betimes.schedule.outside import fire_times
from betimes.schedule.parse import complete, counts_from_now, parse
from betimes.schedule.preview import preview
from betimes.schedule.schedule import Schedule
from betimes.schedule.zone import Zone, tzdata_release, zone, zone_names

__all__ = [
    "NOTHING",
    "Accounted",
    "Budget",
    "Calendar",
    "Catchup",
    "CatchupPlan",
    "Drop",
    "Fire",
    "FireTable",
    "Schedule",
    "ScheduleCache",
    "Skipped",
    "Warned",
    "Window",
    "Zone",
    "complete",
    "counts_from_now",
    "fire_times",
    "import_calendar",
    "last_undecided",
    "left_of",
    "line_of",
    "parse",
    "plan_catchup",
    "preview",
    "read_catchup",
    "tzdata_release",
    "zone",
    "zone_names",
]
