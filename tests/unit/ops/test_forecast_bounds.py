"""A forecast counts a bounded number of specifications, and says which part that is."""

import pytest

from betimes.domain.ids import JobId, floor_of
from betimes.ops.forecast_sample import SPECS_MAX, thinned
from betimes.store.forecast import SharedSpec


def specs(count: int, *, jobs: float = 1.0) -> list[SharedSpec]:
    return [
        SharedSpec(label="q", schedule=f'{{"n": {number}}}', jobs=jobs, ids=[JobId(floor_of(0))])
        for number in range(count)
    ]


def test_as_many_as_are_counted_are_left_as_they_are() -> None:
    every = specs(SPECS_MAX)
    assert thinned(every) == (every, 1.0)


def test_some_stand_for_the_others() -> None:
    every = [*specs(200_000), *specs(3, jobs=50_000.0)]
    some, part = thinned(every)
    assert len(some) <= SPECS_MAX
    assert sum(one.jobs for one in some) == pytest.approx(350_000)
    assert [one.jobs for one in some[:3]] == [50_000.0] * 3, "what many share is counted as it is"
    assert 0.4 < part < 0.5
