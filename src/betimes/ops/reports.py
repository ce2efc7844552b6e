"""What became of attempts, as workers that speak HTTP report it.

Long because a batch of reports is one transaction, from what is told to what was written of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import repeat
from typing import NamedTuple

from betimes.domain.ids import (
    Fence,
    ParcelId,
    RunId,
    ShardId,
    TenantId,
    WorkerId,
    compose,
    to_ms,
)
from betimes.domain.leased import EPOCH, Assignment, HeldLease, ParcelLease, Streak, WantedRun
from betimes.domain.outcome import Outcome, Succeeded, result_of
from betimes.domain.spec import RunSpec, with_retry
from betimes.domain.states import RunState
from betimes.engine.resolve import Lease, resolve
from betimes.ops.contents import Keys, sealing_keys
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.sayings import seal_ending
from betimes.store import remote as rows
from betimes.store.admit import Offered
from betimes.store.ending import Ending
from betimes.store.finish import Held, hold_jobs_of, write_reports
from betimes.store.pool import Connection, Lane
from betimes.store.release import Freed, release
from betimes.store.remote import KnownSpecs
from betimes.store.rules import NO_RULES, Rules, read_rules
from betimes.store.run_notes import (
    Measured,
    note_metrics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of an attempt, as its worker says."""

    lease: HeldLease
    outcome: Outcome
    metrics: Mapping[str, float] = field(default_factory=dict)
    times: "Times | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Successes:
    """Runs of one lease that ended well, told as a set."""

    lease: ParcelLease
    runs: list[RunId]
    results: list[bytes | None] | None = None
    """In the order of the runs; None when none of them has one."""
    times: "Times | None" = None


class Times(NamedTuple):
    """When attempts began and ended by the clock of their worker, which decides nothing."""

    started_at: datetime
    ended_at: datetime

    def within(self, began: datetime, now: datetime) -> "Times":
        """It as far as it can be true: after the lease was given, and before now."""
        started_at = min(max(self.started_at, began), now)
        return Times(started_at, min(max(self.ended_at, started_at), now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What was written: the state after it, and the next try; no state means a lost lease."""

    lease: HeldLease
    state: RunState | None
    next_retry_at: datetime | None = None


class Outcomes(NamedTuple):
    """What became of reports: of each by itself, and those of the sets that were refused."""

    settled: list[Settled]
    lost: list[list[RunId]]
    """For each set of successes the runs whose lease was gone."""


async def report(
    desk: Desk,
    tenant: TenantId,
    reports: Sequence[Report],
    *,
    roll: Callable[[], float],
    successes: Sequence[Successes] = (),
) -> Outcomes:
    """Write outcomes in one transaction, each under the fence of its lease; in the order given.

    A plain success goes the fast way, whether it is told alone or in a set; a success with
    consequences is decided upon like any other end.
    """
    firsts = _firsts(reports)
    plain = [one for one in successes if one.lease.plain]
    singles = [
        Report(lease=one.lease.of(run), outcome=Succeeded(result), times=one.times)
        for one in successes
        if not one.lease.plain
        for run, result in zip(one.runs, one.results or repeat(None), strict=False)
    ]
    every = [*(reports[place] for place in firsts.values()), *singles]
    batch = _Batch(desk=desk, tenant=tenant, reports=every, sets=plain, roll=roll)
    await desk.database.transact(batch.write, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
    for one in batch.offered:
        desk.hints.hint(*one.hint)
    settled = [batch.settled[place] for place in range(len(every))]
    of_lease = dict(zip(firsts, settled, strict=False))
    others = settled[len(firsts) :]
    gone = {(one.lease.run, one.lease.fence) for one in others if one.state is None} | batch.lost
    lost = [
        [run for run in one.runs if (run, one.lease.fence) in gone] if gone else []
        for one in successes
    ]
    return Outcomes([of_lease[one.lease] for one in reports], lost)


def _firsts(reports: Sequence[Report]) -> dict[HeldLease, int]:
    """Of several ends of one lease the first counts; where it stands."""
    firsts: dict[HeldLease, int] = {}
    for place, one in enumerate(reports):
        firsts.setdefault(one.lease, place)
    return firsts


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One transaction of reports: shard by shard, and in each worker by worker."""

    desk: Desk
    tenant: TenantId
    reports: Sequence[Report]
    sets: Sequence[Successes]
    roll: Callable[[], float]
    settled: dict[int, Settled] = field(default_factory=dict)
    lost: set[tuple[RunId, Fence]] = field(default_factory=set)
    """Runs of sets whose lease was gone."""
    offered: list[Offered] = field(default_factory=list)
    rolls: list[float] = field(init=False)
    tails: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.rolls = [self.roll() for _ in self.reports]
        self.tails = self.desk.entropy(len(self.reports) * TAIL_BYTES)

    async def write(self, connection: Connection) -> None:
        """Everything, under the leases that are still good."""
        self.settled, self.lost = {}, set()
        freed = Freed()
        now = await self.desk.now(connection)
        seal = await self._sealing(connection)
        others = any(not is_plain(one) for one in self.reports)
        rules = await read_rules(connection, self.tenant) if others else NO_RULES
        reading = _Reading(tenant=self.tenant, rules=rules, known=self.desk.specs)
        # Of the leases, not of the runs: who reports may name any run, but only leases of ours.
        shards = {one.lease.shard for one in self.reports}
        shards |= {one.lease.shard for one in self.sets}
        for shard in sorted(shards):
            await self._shard(connection, shard, reading, seal, freed, now)
        self.offered = await release(connection, freed)

    async def _shard(
        self,
        connection: Connection,
        shard: ShardId,
        reading: "_Reading",
        seal: "_Seal",
        freed: Freed,
        now: datetime,
    ) -> None:
        places = [place for place, one in enumerate(self.reports) if one.lease.shard == shard]
        slow = [place for place in places if not is_plain(self.reports[place])]
        await reading.read(connection, shard, [self.reports[place].lease.run for place in slow])
        endings = {place: self._ending(place, shard, reading, seal, now) for place in slow}
        streaks = [
            _streak(one.lease, one.runs, one.results, one.times, now, seal)
            for one in self.sets
            if one.lease.shard == shard
        ]
        streaks += _together(
            [self.reports[place] for place in places if place not in endings], now, seal
        )
        known = [one for one in endings.values() if one is not None]
        first = Held(set())
        # The jobs of all of them before the parcels of any.
        await hold_jobs_of(connection, shard, first, known)
        wrote = _Wrote()
        holders = {self.reports[place].lease.worker for place in places}
        for worker in sorted(holders | {holder for holder, _ in streaks}):
            mine = [
                end
                for place, end in endings.items()
                if end is not None and self.reports[place].lease.worker == worker
            ]
            theirs = [streak for holder, streak in streaks if holder == worker]
            if mine or theirs:
                await self._write(connection, shard, worker, theirs, mine, wrote, freed, first)
        await self._conclude(connection, shard, places, endings, wrote, now)

    async def _write(
        self,
        connection: Connection,
        shard: ShardId,
        worker: WorkerId,
        streaks: Sequence[Streak],
        endings: Sequence[Ending],
        wrote: "_Wrote",
        freed: Freed,
        first: Held,
    ) -> None:
        """What one worker tells: every statement repeats who holds what."""
        # What is given back has not begun: it has used no token.
        unbegun = frozenset(one.parcel for one in endings if one.started_at is None)
        leases = {one.lease for one in endings} | {one.lease for one in streaks}
        held = Held(leases, counted=unbegun, pausing=first.pausing)
        margin = self.desk.margin
        found = await write_reports(
            connection, worker, shard, held, streaks, endings, margin=margin
        )
        wrote.add(endings, found.endings)
        freed.add(held.freed)
        wrote.finished |= found.finished
        if found.unwritten:
            runs = {run for run, _ in found.unwritten}
            wrote.before |= await rows.finished_by(connection, shard, worker, runs)
            wrote.unwritten |= found.unwritten

    async def _conclude(
        self,
        connection: Connection,
        shard: ShardId,
        places: Sequence[int],
        endings: Mapping[int, Ending | None],
        wrote: "_Wrote",
        now: datetime,
    ) -> None:
        """What each report has come to."""
        unknown = [
            self.reports[place].lease
            for place, ending in endings.items()
            if wrote.of(ending) is None
        ]
        for worker in sorted({one.worker for one in unknown}):
            runs = [one.run for one in unknown if one.worker == worker]
            wrote.before |= await rows.finished_by(connection, shard, worker, runs)
        for place in places:
            one = self.reports[place]
            self.settled[place] = wrote.settled(one.lease, endings.get(place), place in endings)
        self.lost |= wrote.unwritten - wrote.before.keys()
        measured: dict[RunId, Measured] = {}
        for place in places:
            one = self.reports[place]
            if one.metrics and wrote.is_new(one.lease, endings.get(place), place in endings):
                told = Measured(one.lease.run, one.lease.fence, one.metrics)
                measured.setdefault(one.lease.run, told)
        await note_metrics(connection, self.tenant, shard, list(measured.values()), now=now)

    def _ending(
        self, place: int, shard: ShardId, reading: "_Reading", seal: "_Seal", now: datetime
    ) -> Ending | None:
        tail = int.from_bytes(self.tails[place * TAIL_BYTES : (place + 1) * TAIL_BYTES], "big")
        parcel = ParcelId(compose(to_ms(now), shard, tail))
        ending = reading.ending(self.reports[place], now, self.rolls[place], parcel)
        return None if ending is None else seal.ending(ending)

    async def _sealing(self, connection: Connection) -> "_Seal":
        outcomes = (one.outcome for one in self.reports)
        nothing = all(isinstance(one, Succeeded) and one.result is None for one in outcomes)
        nothing = nothing and all(one.results is None for one in self.sets)
        if not self.desk.seals or nothing:
            return _Seal(None)
        return _Seal(await sealing_keys(self.desk, connection, self.tenant))


class _Seal(NamedTuple):
    """What makes of the ends of attempts what goes into their rows."""

    keys: Keys | None

    def ending(self, ending: Ending) -> Ending:
        if self.keys is None:
            return ending
        return seal_ending(self.keys, replace(ending, result=self.keys.seal(ending.result)))

    def result(self, result: bytes | None) -> bytes | None:
        return result if self.keys is None else self.keys.seal(result)


def _streak(
    lease: ParcelLease,
    runs: list[RunId],
    results: list[bytes | None] | None,
    told: Times | None,
    now: datetime,
    seal: _Seal,
) -> tuple[WorkerId, Streak]:
    """Successes as they are written, and by whom."""
    began = began_at(lease)
    # One clock for both, that of the database; should it be set back, nothing ends before it began.
    now = max(now, began)
    times = (told or Times(began, now)).within(began, now)
    kept = None if results is None else [seal.result(one) for one in results]
    return lease.worker, Streak(
        lease.parcel, lease.fence, lease.attempt, times.started_at, times.ended_at, runs, kept
    )


def _together(
    reports: Sequence[Report], now: datetime, seal: _Seal
) -> list[tuple[WorkerId, Streak]]:
    """Plain successes that were told one by one, as sets."""
    alike: dict[tuple[ParcelLease, Times | None], list[Report]] = {}
    for one in reports:
        alike.setdefault((one.lease.held, one.times), []).append(one)
    return [
        _streak(
            lease,
            [one.lease.run for one in some],
            [result_of(one.outcome) for one in some],
            times,
            now,
            seal,
        )
        for (lease, times), some in alike.items()
    ]


@dataclass(slots=True)
class _Wrote:
    """The very ends that were written: of one run, others may have been told beside them."""

    by_told: dict[int, Ending] = field(default_factory=dict)
    """By the identity of what was told; somebody may have asked for the end meanwhile."""
    unwritten: set[tuple[RunId, Fence]] = field(default_factory=set)
    """Successes that may not have been written now."""
    finished: set[tuple[RunId, Fence]] = field(default_factory=set)
    """Successes told under good leases, of runs that these were about."""
    before: dict[tuple[RunId, Fence], RunState] = field(default_factory=dict)
    """Runs that carry the worker and fence of whoever tells them: said before, or by a target."""

    def add(self, told: Sequence[Ending], written: Sequence[Ending]) -> None:
        ends = {one.run: one for one in written}
        for one in told:
            # Of one run the first that is under a good lease is written.
            if (end := ends.get(one.run)) is not None and end.lease == one.lease:
                self.by_told[id(one)] = ends.pop(one.run)

    def of(self, ending: Ending | None) -> Ending | None:
        return None if ending is None else self.by_told.get(id(ending))

    def is_new(self, lease: HeldLease, ending: Ending | None, is_slow: bool) -> bool:
        """Whether an end was written now, and not before."""
        if is_slow:
            return self.of(ending) is not None
        key = lease.run, lease.fence
        return key in self.finished and (key not in self.unwritten or key in self.before)

    def settled(self, lease: HeldLease, ending: Ending | None, is_slow: bool) -> Settled:
        """What one report has come to."""
        if (end := self.of(ending)) is not None:
            again = None if end.again is None else end.again.visible_at
            return Settled(lease=lease, state=end.state, next_retry_at=again)
        if not is_slow and (lease.run, lease.fence) not in self.unwritten:
            return Settled(lease=lease, state=RunState.SUCCEEDED)
        return Settled(lease=lease, state=self.before.get((lease.run, lease.fence)))


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What the ends of attempts need to know, read for all reports of a shard at once."""

    tenant: TenantId
    rules: Rules
    known: KnownSpecs
    runs: Mapping[RunId, WantedRun] = field(default_factory=dict)
    specs: Mapping[RunId, RunSpec] = field(default_factory=dict)
    queues: Mapping[RunId, tuple[str, int]] = field(default_factory=dict)

    async def read(self, connection: Connection, shard: ShardId, runs: Sequence[RunId]) -> None:
        """Three or four statements, however many they are."""
        if runs:
            self.runs = await rows.wanted(connection, shard, runs)
            self.specs = await rows.specs(
                connection, shard, list(self.runs.values()), known=self.known
            )
            self.queues = await rows.queues_of(connection, shard, list(self.runs))

    def ending(self, one: Report, now: datetime, roll: float, parcel: ParcelId) -> Ending | None:
        """What to write after an attempt; nothing about a run that is over."""
        lease = one.lease
        began = began_at(lease.held)
        now = max(now, began)
        started_at = began if one.times is None else one.times.within(began, now).started_at
        run = self.runs.get(lease.run)
        if run is None or run.id not in self.queues:
            return None
        queue, priority = self.queues[run.id]
        # Lost deliveries are attempts, also when this one does not count.
        run = run._replace(attempt=lease.attempt - 1)
        spec = with_retry(self.specs[run.id], self.rules.queue(self.tenant, queue).retry)
        home = Lease(lease.parcel, lease.fence, self.tenant, queue, priority)
        return resolve(
            one.outcome,
            Assignment(run, home, spec, run.handler, run.handler),
            attempt=lease.attempt,
            started_at=started_at,
            now=now,
            roll=roll,
            parcel_id=parcel,
        )


def began_at(lease: ParcelLease) -> datetime:
    """When a lease was given: no attempt under it has begun before."""
    return EPOCH + timedelta(microseconds=lease.started_us)


def is_plain(one: Report) -> bool:
    """Whether it went well and nothing follows from that."""
    return isinstance(one.outcome, Succeeded) and one.lease.plain
