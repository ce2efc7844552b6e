"""Plans are worked out once, and a claim keeps those it needs whatever is forgotten meanwhile."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from betimes.domain.ids import JobId, RunId, compose
from betimes.domain.spec import RunSpec
from betimes.store.parcels import WantedRun
from betimes.store.specs import SpecKey
from betimes.worker import plans as module
from betimes.worker.handlers import Handlers, Kind
from betimes.worker.plans import Plans, on_the_loop

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
    return Plans(specs=specs, handlers=Handlers(), ways={Kind.ASYNC: on_the_loop})


async def test_a_definition_is_read_once() -> None:
    specs = Known()
    plans = make_plans(specs)
    await plans.of([run_of(1), run_of(1), run_of(2)])
    await plans.of([run_of(2), run_of(1)])
    assert specs.asked == 1


async def test_a_claim_of_more_definitions_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was known when the claim began is forgotten to make room, and still there for it."""
    monkeypatch.setattr(module, "PLANS_MAX", 2)
    plans = make_plans(Known())
    await plans.of([run_of(1), run_of(2)])
    runs = [run_of(job) for job in (1, 2, 3, 4, 5)]
    found = await plans.of(runs)
    assert [plan.handler for plan in found] == [f"h{run.job.int}" for run in runs if run.job]
    assert len(plans._plans) == 2
