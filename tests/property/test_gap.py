"""The gap a pause leaves: every fire of it either runs or is recorded, and none twice."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.ids import JobId, TenantId, compose, to_us
from betimes.domain.job import GAP_FROM, Definition, Job
from betimes.domain.states import JobState
from betimes.ops.gap import RUN_ALL_MAX, Missed, close_gap, gap_start, open_gap
from betimes.ops.outlook import just_before
from betimes.ops.timetable import read_timetable
from betimes.schedule import Accounted, parse

START = datetime(2026, 3, 28, tzinfo=UTC)
SCHEDULES = st.sampled_from(
    [
        {"type": "interval", "every": "PT7S", "anchor": "1970-01-01T00:00:00Z"},
        {"type": "interval", "every": "PT20S", "anchor": "1970-01-01T00:00:00Z", "jitter": "PT30S"},
        {"type": "cron", "expr": "*/5 * * * *", "timezone": "Europe/Stockholm"},
        {"type": "cron", "expr": "30 2 * * *", "timezone": "Europe/Stockholm"},
        {"type": "cron", "expr": "0 0 1 1 *", "timezone": "UTC"},
        {"type": "manual"},
    ]
)


def paused(schedule: dict[str, str], begin: datetime) -> Job:
    return Job(
        id=JobId(compose(1, 0, 1)),
        tenant=TenantId(UUID(int=1)),
        group="default",
        name=None,
        definition=Definition(schedule=parse({"timezone": "UTC", **schedule}).to_dict()),
        state=JobState.PAUSED,
        revision=3,
        fires=0,
        next_fire_at=None,
        paused_until=None,
        created_at=START,
        updated_at=START,
        tzdata="",
        state_reason={GAP_FROM: to_us(begin)},
    )


@given(
    schedule=SCHEDULES,
    after=st.integers(0, 10_000),
    length=st.integers(-10, 20_000),
    missed=st.sampled_from(Missed),
    share=st.integers(1, 7),
)
def test_runs_and_records_make_up_the_gap(
    schedule: dict[str, str], after: int, length: int, missed: Missed, share: int
) -> None:
    begin = START + timedelta(seconds=after)
    until = begin + timedelta(seconds=length)
    job = paused(schedule, begin)
    timetable = read_timetable(job.definition.schedule, job.id)
    every = [fire.nominal for fire in timetable.fires(just_before(begin), until)]
    kept = set(every[::share]) if share > 1 else set()

    closed = close_gap(job, timetable, until=until, missed=missed, accounted=Accounted(kept))

    run = [fire.nominal for fire in closed.runs]
    recorded: list[datetime] = []
    for one in closed.dropped:
        last = one.until_at or one.fire_at
        inside = [fire for fire in every if one.fire_at <= fire <= last]
        assert one.fires == len(inside)
        assert (one.until_at is None) == (one.fires == 1)
        assert one.revision == 3
        recorded += inside
    assert sorted(run + recorded) == [fire for fire in every if fire not in kept]
    match missed:
        case Missed.SKIP:
            assert run == []
        case Missed.RUN_LATEST:
            assert set(run) <= set(every[-1:])
        case Missed.RUN_ALL:
            assert run == [fire for fire in every[-RUN_ALL_MAX:] if fire not in kept]


@given(
    seconds=st.lists(st.integers(-1_000, 1_000), max_size=5), ahead=st.none() | st.integers(0, 9)
)
def test_a_gap_begins_at_the_first_fire_nobody_has_accounted_for(
    seconds: list[int], ahead: int | None
) -> None:
    job = paused({"type": "manual"}, START)
    forgotten = [START + timedelta(seconds=second) for second in seconds]
    next_fire = None if ahead is None else START + timedelta(seconds=ahead)
    active = Job(
        **{name: getattr(job, name) for name in job.__slots__} | {"next_fire_at": next_fire}
    )
    said = open_gap(active, forgotten, START)
    again = Job(**{name: getattr(job, name) for name in job.__slots__} | {"state_reason": said})
    assert gap_start(again) == min([*forgotten, next_fire or START])
