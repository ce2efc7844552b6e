"""Midnight is flattened by `H`, `window` and `jitter`; exclusions leave their reason."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from betimes.coordinator.plan import Pass
from betimes.domain import ids
from betimes.domain.ids import JobId
from betimes.schedule import Budget, ScheduleCache, parse
from betimes.store.plan import DueJob
from integration.coordinator.conftest import TENANT, World

JOBS = 10_000
MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)
CROWD = 40
"""Ten thousand over an hour are 2.8 a second; no second may hold many times that."""


def starts_per_second(schedule: dict[str, object]) -> Counter[datetime]:
    """When ten thousand daily jobs start, planned as the planner does."""
    now = MIDNIGHT - timedelta(minutes=1)
    stored = json.dumps(parse(schedule, now=now, timezone="UTC").to_dict())
    schedules = ScheduleCache(JOBS)
    current = Pass(schedules, now=now, until=MIDNIGHT + timedelta(hours=2))
    found: Counter[datetime] = Counter()
    for number in range(JOBS):
        job = JobId(ids.compose(ids.to_ms(now), 1, number * 7_919 + 1))
        fire = schedules.get(stored, str(job)).next(now)
        assert fire is not None
        due = DueJob(job, TENANT, 1, fire.nominal, 0, "q", 5, "h", stored, None)
        step = current.step(due, Budget())
        assert len(step.dues) == 1
        found[step.dues[0].replace(microsecond=0)] += 1
    return found


async def test_midnight_is_a_crowd_without_them() -> None:
    starts = starts_per_second({"type": "cron", "expr": "0 0 * * *"})
    assert starts == {MIDNIGHT: JOBS}


@pytest.mark.parametrize(
    ("schedule", "least"),
    [
        ({"type": "cron", "expr": "H H(0-0) * * *"}, 60),
        ({"type": "cron", "expr": "0 0 * * *", "window": "PT1H"}, 3_000),
        ({"type": "cron", "expr": "0 0 * * *", "jitter": "PT1H"}, 3_000),
        ({"type": "cron", "expr": "H H(0-0) * * *", "jitter": "PT1M"}, 3_000),
    ],
    ids=["H", "window", "jitter", "H and jitter"],
)
async def test_it_is_flattened(schedule: dict[str, object], least: int) -> None:
    """As many starts as before, within the hour, in no second more than a few."""
    starts = starts_per_second(schedule)
    assert starts.total() == JOBS
    assert len(starts) >= least
    assert min(starts) >= MIDNIGHT
    assert max(starts) < MIDNIGHT + timedelta(minutes=62)
    fair = JOBS / least
    assert max(starts.values()) < 2.5 * max(fair, CROWD / 4)


async def test_what_a_calendar_excludes_is_recorded(world: World) -> None:
    holidays = {"name": "holidays", "dates": [world.clock.now().date().isoformat()]}
    schedule: dict[str, object] = {
        "type": "interval",
        "every": "PT1M",
        "anchor": world.clock.now().isoformat(),
        "calendars": {"exclude": [holidays]},
    }
    job = await world.insert_job(schedule, next_fire_at=world.seconds(60))
    coordinator = await world.coordinator()
    await world.live(2, coordinator)
    rows = await world.fetch("SELECT code, fires FROM betimes.decisions WHERE job_id = $1", job)
    assert rows
    assert {code for code, _ in rows} == {"CALENDAR_EXCLUDED"}
    assert await world.fires(job) == []
