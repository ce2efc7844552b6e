"""Plans are worked out once, and a claim keeps those it needs whatever is forgotten meanwhile."""

import tracemalloc
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from betimes.domain.ids import JobId, RunId, compose
from betimes.domain.leased import WantedRun
from betimes.domain.spec import RunSpec
from betimes.store.specs import SpecKey, weight_of
from betimes.worker import plans as module
from betimes.worker.handlers import Handlers, Kind
from betimes.worker.plan import Planning, on_the_loop
from betimes.worker.plans import Plans

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EACH = module.KNOWN_BYTES + weight_of("{}", "{}", None)
"""What a job with a definition of its own takes."""


class Known:
    """Definitions of every job, with a count of the questions."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
        self.asked += 1
        return {key: RunSpec(handler=f"h{key.job.int}", payload=None) for key in wanted}


def run_of(job: int) -> WantedRun:
    nothing: Any = None
    return WantedRun(
        RunId(compose(1, 0, job)),
        JobId(compose(1, 0, job)),
        1,
        NOW,
        NOW,
        nothing,
        nothing,
        0,
        0,
        "h",
        nothing,
        nothing,
    )


def make_plans(specs: Any) -> Plans:
    return Plans(
        specs=specs, planning=Planning(handlers=Handlers(), ways={Kind.ASYNC: on_the_loop})
    )


async def test_a_definition_is_read_once() -> None:
    specs = Known()
    plans = make_plans(specs)
    await plans.of([run_of(1), run_of(1), run_of(2)])
    await plans.of([run_of(2), run_of(1)])
    assert specs.asked == 1


async def test_a_claim_of_more_definitions_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was known when the claim began is forgotten to make room, and still there for it."""
    monkeypatch.setattr(module, "KNOWN_BYTES_MAX", 2 * EACH)
    plans = make_plans(Known())
    await plans.of([run_of(1), run_of(2)])
    runs = [run_of(job) for job in (1, 2, 3, 4, 5)]
    found = await plans.of(runs)
    assert [plan.handler for plan in found] == [f"h{run.job.int}" for run in runs if run.job]
    assert len(plans._known) < len(runs)


async def test_jobs_that_fire_in_turns_are_mostly_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """More jobs than are kept, always in the same order: to forget the oldest would know none."""
    monkeypatch.setattr(module, "KNOWN_BYTES_MAX", 64 * EACH)
    specs = Known()
    plans = make_plans(specs)
    for _ in range(20):
        for job in range(80):
            await plans.of([run_of(job)])
    assert specs.asked < 20 * 80 * 2 / 3


async def test_an_edited_job_is_read_again_and_its_earlier_runs_keep_their_revision() -> None:
    specs = Known()
    plans = make_plans(specs)
    old, new = run_of(1), run_of(1)._replace(revision=2)
    await plans.of([old])
    found = await plans.of([old, new])
    assert specs.asked == 2
    assert [plan.handler for plan in found] == ["h" + str(old.job.int if old.job else 0)] * 2
    await plans.of([new])
    assert specs.asked == 2


async def test_definitions_that_are_the_same_share_a_plan() -> None:
    same = RunSpec(handler="h", payload=None)

    class OneForAll:
        async def read(self, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
            return dict.fromkeys(wanted, same)

    first, second = await make_plans(OneForAll()).of([run_of(1), run_of(2)])
    assert first is second


async def test_what_is_kept_is_bounded_by_bytes() -> None:
    """A hundred thousand jobs with a payload of their own took gigabytes; ad-hoc runs as well."""

    class Large:
        async def read(self, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
            return {key: RunSpec(handler="h", payload=bytes(1 << 20)) for key in wanted}

    plans = make_plans(Large())
    for job in range(300):
        (plan,) = await plans.of([run_of(job)])
        assert len(plan.spec.payload or b"") == 1 << 20
    assert plans.weight <= module.KNOWN_BYTES_MAX
    assert len(plans._made) <= 64
    for number in range(20_000):
        own = run_of(1)._replace(job=None, revision=None, options=f'{{"tags":{{"n":"{number}"}}}}')
        await plans.of([own])
    assert plans.weight <= module.KNOWN_BYTES_MAX + module.AD_HOC_BYTES_MAX
    assert len(plans._ad_hoc) < 6_000


async def test_payloads_of_many_jobs_are_not_all_kept_in_memory() -> None:
    """Judged from outside, by what is allocated: 300 jobs with a mebibyte each."""

    class Large:
        async def read(self, wanted: Iterable[SpecKey]) -> dict[SpecKey, RunSpec]:
            return {key: RunSpec(handler="h", payload=bytes([1]) * (1 << 20)) for key in wanted}

    plans = make_plans(Large())
    tracemalloc.start()
    try:
        for job in range(300):
            await plans.of([run_of(job)])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept <= 100 << 20
