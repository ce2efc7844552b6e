"""Ends of attempts on their way to the service over HTTP."""

from collections.abc import Sequence
from typing import Any, cast

from betimes.domain.ids import RunId
from betimes.runtime.grants import held_of
from betimes.runtime.line import Grant, GrantedRun
from betimes.runtime.reporter import HttpParcel, HttpReporter
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.wire.parcels import ParcelReport, ParcelReported
from betimes.wire.workers import PARCEL_RUNS_MAX
from betimes.worker.held import HeldParcels
from worker_kit import half, run_id


class Service:
    """Takes every report, and remembers how it came."""

    def __init__(self) -> None:
        self.requests: list[list[RunId]] = []

    async def report(self, reports: Sequence[ParcelReport]) -> list[ParcelReported]:
        self.requests.append([RunId(end.run) for one in reports for end in one.ended])
        return [ParcelReported(lease_id=one.lease_id) for one in reports]


def a_parcel(clock: ManualClock, number: int, *, runs: int) -> HttpParcel:
    grant = Grant(
        lease_id=f"lease {number}",
        fence=1,
        attempt=1,
        queue="default",
        priority=5,
        runs=[GrantedRun(run_id(clock.now()), 0, clock.now()) for _ in range(runs)],
    )
    return held_of(grant, since=0.0, trusted_until=30.0)


async def test_many_parcels_are_given_back_in_few_requests(clock: ManualClock) -> None:
    """A worker that goes has little time for it, and what is not given back waits for a lease."""
    service = Service()
    reporter = HttpReporter(
        line=cast("Any", service),
        held=HeldParcels(),
        clock=clock,
        roll=half,
        telemetry=Telemetry(clock=clock),
        died=lambda _: None,
    )
    parcels = [a_parcel(clock, number, runs=3) for number in range(500)]
    assert await reporter.give_back(parcels) == 500
    assert [len(runs) for runs in service.requests] == [PARCEL_RUNS_MAX, 1_500 - PARCEL_RUNS_MAX]
    told = {run for runs in service.requests for run in runs}
    assert told == {run for parcel in parcels for run in parcel.leased.runs}
    assert not any(parcel.pending for parcel in parcels)
