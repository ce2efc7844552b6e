"""Pages of what is due soon fit together for every schedule, jitter or not."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.ids import JobId, RunId, compose, floor_of, to_ms
from betimes.domain.states import RunState
from betimes.ops.upcoming import LeftOut, Soon, SoonKind, merge_soon
from betimes.schedule import parse
from betimes.store.jobs import to_json
from betimes.store.upcoming import FiringJob, SoonRun

START = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = START + timedelta(minutes=20)


def job(number: int, seconds: int, jitter: int) -> FiringJob:
    members = {"type": "interval", "every": f"PT{seconds}S", "anchor": "1970-01-01T00:00:00Z"}
    spread = {"jitter": f"PT{jitter}S"} if jitter else {}
    schedule = parse({**members, **spread, "timezone": "UTC"})
    first = schedule.next(START)
    assert first is not None
    return FiringJob(
        id=JobId(compose(to_ms(START), 1, number)),
        next_fire_at=first.nominal,
        queue="default",
        priority=5,
        schedule=to_json(schedule.to_dict()),
    )


JOBS = st.lists(st.tuples(st.integers(5, 400), st.sampled_from([0, 0, 20, 300])), max_size=5)


@given(specs=JOBS, size=st.integers(1, 20), half=st.booleans())
def test_pages_are_the_whole_cut_into_pieces(
    specs: list[tuple[int, int]], size: int, half: bool
) -> None:
    jobs = [job(number, *spec) for number, spec in enumerate(specs)]
    low, high = floor_of(to_ms(START)), floor_of(to_ms(UNTIL) + 1)
    whole = merge_soon([], jobs, low=low, high=high, most=10_000).items
    assert [item.id for item in whole] == sorted({item.id for item in whole})
    # Some of them have become runs meanwhile, and are still computed, too.
    runs = [as_run(item) for item in whole[::2]] if half else []

    seen: list[Soon] = []
    place: UUID = low
    while page := merge_soon(
        [run for run in runs if run.id > place], jobs, low=place, high=high, most=size
    ).items:
        seen += page
        place = page[-1].id
    assert [item.id for item in seen] == [item.id for item in whole]
    assert [item.id for item in seen if item.kind is SoonKind.RUN] == [run.id for run in runs]


def as_run(item: Soon) -> SoonRun:
    return SoonRun(
        id=RunId(item.id),
        due_at=item.due_at,
        fire_at=item.fire_at,
        job=item.job,
        queue=item.queue,
        priority=item.priority,
        state=RunState.SCHEDULED,
        handler=item.handler,
        place=item.place,
    )


def test_jobs_beyond_the_budget_of_a_page_are_named() -> None:
    jobs = [job(number, 5, 300) for number in range(4)]
    low, high = floor_of(to_ms(START)), floor_of(to_ms(UNTIL) + 1)
    whole = merge_soon([], jobs, low=low, high=high, most=10_000)
    assert not whole.left_out
    less = merge_soon([], jobs, low=low, high=high, most=10_000, steps=2_000)
    assert less.items
    left_out = less.left_out[LeftOut.BUDGET]
    assert left_out == [one.id for one in jobs[-len(left_out) :]]
    assert {item.job for item in less.items} == {one.id for one in jobs} - {*left_out}
