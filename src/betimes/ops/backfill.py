"""Backfilling: fires of a span in the past become runs after all, at a bounded pace.

The runs have the ids the planner gives, so fires that have run are left alone, and a backfill may
be repeated or meet the planner in the same span. They wait in the lane for catching up, spread over
time, and are inserted in transactions of bounded size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from hashlib import blake2b

from betimes.domain.errors import IllegalTransition, Invalid, TooLarge
from betimes.domain.ids import JobId, RunId, TenantId, floor_of, occurrence, to_ms, to_text, to_us
from betimes.domain.job import Job
from betimes.domain.parcel import Lane, Parcel
from betimes.domain.run import spread
from betimes.domain.states import JobState, RunState, Trigger
from betimes.domain.terms import terms_of
from betimes.fairness.overlap import OverlapPolicy
from betimes.ops.checks import check_instant, check_rate
from betimes.ops.desk import Desk
from betimes.ops.evaluating import evaluated
from betimes.ops.grip import Grip, grip
from betimes.ops.manual import Overlap
from betimes.ops.outlook import just_before, runs_of
from betimes.ops.timetable import read_timetable
from betimes.schedule import Budget, Fire, Schedule
from betimes.store.admit import declare
from betimes.store.control import find_fires
from betimes.store.occurrences import Occurrence, insert_planned
from betimes.store.pool import Connection
from betimes.store.publish import place_runs
from betimes.wire.base import shown_instant

BACKFILL_MAX = 10_000
RUNS_PER_TRANSACTION = 1_000
FIRES_AT_ONCE = 500
RATE = 10.0


class Order(StrEnum):
    """Which fires run first."""

    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """The fires of the span that were wanted, and the runs that were made for them."""

    times: Sequence[datetime]
    runs: Sequence[RunId]


async def backfill_job(
    desk: Desk,
    tenant: TenantId,
    job: JobId,
    *,
    begin: datetime,
    end: datetime,
    max_runs: int = 1_000,
    order: Order = Order.OLDEST,
    only_missing: bool = True,
    rate_per_second: float = RATE,
    overlap: Overlap = Overlap.INHERIT,
    max_concurrency: int | None = None,
    dry_run: bool = False,
    operation: str = "",
) -> Backfilled:
    """Runs for the fires from `begin` up to and including `end`.

    With `only_missing` False, fires that have run already run again, once per `operation`. With
    `inherit` they go one after the other, unless the job allows its runs to overlap. At most
    `max_concurrency` of them are under way at once: they share a concurrency key of their own.
    """
    _check(begin, end, max_runs, rate_per_second, only_missing=only_missing, operation=operation)
    fill = Backfill(
        desk=desk,
        tenant=tenant,
        job=job,
        rate=rate_per_second,
        overlap=overlap,
        trigger="schedule" if only_missing else f"backfill:{operation}",
        most=max_concurrency,
        gate=_gate(job, operation),
    )

    async def choose(connection: Connection) -> list[Fire]:
        return await fill.choose(
            connection, begin, end, max_runs=max_runs, only_missing=only_missing
        )

    fires = await desk.transact(choose, tenant=tenant)
    if order is Order.NEWEST:
        fires.reverse()
    times = [fire.nominal for fire in fires]
    return Backfilled(times=times, runs=[] if dry_run else await fill.insert(fires))


@dataclass(slots=True, kw_only=True)
class Backfill:
    """One backfill of one job."""

    desk: Desk
    tenant: TenantId
    job: JobId
    rate: float
    trigger: str
    overlap: Overlap = Overlap.INHERIT
    most: int | None = None
    """How many may be under way at once."""
    gate: str = ""
    """The concurrency key for that."""
    started_at: datetime | None = None

    async def choose(
        self,
        connection: Connection,
        begin: datetime,
        end: datetime,
        *,
        max_runs: int,
        only_missing: bool,
    ) -> list[Fire]:
        """The fires of the span, without those that have a run if only missing ones are wanted."""
        held = await self._grip(connection)
        job, now = held.job, held.now
        self._check_key(job)
        if end > now:
            raise Invalid(
                f"expected a span that is over, got an end {end - now} from now", pointer="/to"
            )
        after = just_before(begin)

        def counted(budget: Budget) -> tuple[Schedule, int]:
            timetable = read_timetable(job.definition.schedule, job.id, budget)
            return timetable, timetable.count(after, end, budget=budget)

        timetable, count = await evaluated(counted)
        if count > max_runs:
            raise TooLarge(
                f"expected at most {max_runs} fires in the span, got {count}",
                code="backfill_too_large",
            )
        fires: list[Fire] = []
        while len(fires) < count:
            # A block at a time, so that others have the event loop in between.
            most = min(FIRES_AT_ONCE, max_runs - len(fires))
            some = await evaluated(partial(_block, timetable, after, end, most))
            fires += some
            if len(some) < most:
                break
            after = some[-1].nominal
        if only_missing and fires:
            known = await find_fires(
                connection,
                job.shard,
                job.id,
                low=floor_of(to_ms(begin)),
                first=begin,
                last=end,
            )
            fires = [fire for fire in fires if fire.nominal not in known]
        return fires

    async def insert(self, fires: Sequence[Fire]) -> list[RunId]:
        """Insert the runs, a bounded number per transaction."""
        made: list[RunId] = []
        for start in range(0, len(fires), RUNS_PER_TRANSACTION):
            piece = fires[start : start + RUNS_PER_TRANSACTION]
            inserted, parcels = await self._insert(piece, start)
            made += inserted
            for parcel in parcels[:1]:
                self.desk.hints.hint(*parcel.hint)
        return made

    async def _insert(self, fires: Sequence[Fire], before: int) -> tuple[list[RunId], list[Parcel]]:
        async def work(connection: Connection) -> tuple[list[RunId], list[Parcel]]:
            held = await self._grip(connection)
            job, now = held.job, held.now
            self.started_at = self.started_at or now
            runs = [
                self._changed(run)
                for run in runs_of(
                    fires,
                    job.definition,
                    job=job.id,
                    tenant=job.tenant,
                    revision=job.revision,
                    near=now,
                    planned_late=True,
                )
            ]
            if self.most is not None:
                await declare(connection, job.tenant, {self.gate: self.most}, now=now)
            inserted = await insert_planned(connection, job.shard, runs, trigger=Trigger.BACKFILL)
            times = list(spread(before + len(runs), self.started_at, self.rate))[before:]
            waiting = [
                run.waiting(at) for run, at in zip(runs, times, strict=True) if run.id in inserted
            ]
            placed = await place_runs(
                connection,
                job.shard,
                waiting,
                now=now,
                reach=held.published_through,
                lane=Lane.CATCH_UP,
            )
            # What a repetition finds was inserted by us, or by somebody who wanted the same.
            return [run.id for run in runs], placed.parcels

        return await self.desk.transact(work, tenant=self.tenant)

    def _changed(self, run: Occurrence) -> Occurrence:
        """The run as a backfill makes it: its start deadline was over long ago."""
        fire = run.due_at if run.fire_at is None else run.fire_at
        return replace(
            run,
            id=occurrence(run.job, to_us(fire), to_ms(run.due_at), self.trigger),
            state=RunState.QUEUED,
            overlap=run.overlap if self.overlap is Overlap.INHERIT else OverlapPolicy.ALLOW.number,
            start_by=None,
            terms=run.terms if self.most is None else run.terms._replace(gate=self.gate),
        )

    def _check_key(self, job: Job) -> None:
        key = terms_of(job.definition.options).gate
        if self.most is not None and key is not None:
            raise Invalid(
                f"expected no max_concurrency for a job whose concurrency key {key!r} limits its "
                f"runs already, got {self.most}",
                pointer="/max_concurrency",
            )

    async def _grip(self, connection: Connection) -> Grip:
        held = await grip(self.desk, connection, self.tenant, self.job)
        if held.job.state is JobState.CANCELLED:
            raise IllegalTransition("a job that is cancelled cannot run any more")
        return held


def _block(
    timetable: Schedule, after: datetime, end: datetime, most: int, budget: Budget
) -> list[Fire]:
    return list(timetable.fires(after, end, most, budget=budget))


def _gate(job: JobId, operation: str) -> str:
    """The concurrency key of one backfill; a repetition of it finds the same."""
    digest = blake2b(operation.encode(), digest_size=8).hexdigest()
    return f"backfill:{to_text('job', job)}:{digest}"


def _check(
    begin: datetime,
    end: datetime,
    max_runs: int,
    rate: float,
    *,
    only_missing: bool,
    operation: str,
) -> None:
    check_instant(begin, pointer="/from")
    check_instant(end, pointer="/to")
    check_rate(rate)
    if end < begin:
        raise Invalid(
            f"expected an end not before {shown_instant(begin)}, got {shown_instant(end)}",
            pointer="/to",
        )
    if not 1 <= max_runs <= BACKFILL_MAX:
        raise Invalid(f"expected max within 1-{BACKFILL_MAX}, got {max_runs}", pointer="/max")
    if not only_missing and not operation:
        raise Invalid(
            "expected an operation id to run fires again that have run, got none",
            pointer="/operation_id",
        )
