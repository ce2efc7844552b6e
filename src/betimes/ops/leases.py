"""What remote workers report about the runs they hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from betimes.domain.errors import FencedOut
from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId, compose, shard_of, to_ms
from betimes.domain.leased import Assignment, WantedRun
from betimes.domain.outcome import Outcome, Succeeded, result_of
from betimes.domain.spec import RunSpec, with_retry
from betimes.domain.states import RunState
from betimes.engine.resolve import Lease, resolve
from betimes.ops.contents import sealing_keys
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.sayings import open_lines, open_notes, seal_ending, sealed_lines, sealed_note
from betimes.store import remote as rows
from betimes.store.admit import Offered
from betimes.store.ending import Ending
from betimes.store.finish import Held, hold_jobs_of, write_endings
from betimes.store.pool import Connection, Lane
from betimes.store.release import Freed, release
from betimes.store.remote import HeldLease
from betimes.store.rules import NO_RULES, Rules, read_rules
from betimes.store.run_notes import (
    LogLine,
    Measured,
    Note,
    append_logs,
    note_metrics,
    note_run,
    read_logs,
    read_notes,
)
from betimes.store.runs import read_run

__all__ = [
    "HeldLease",
    "LogLine",
    "Note",
    "Report",
    "Settled",
    "add_logs",
    "extend",
    "note",
    "read_checkpoint",
    "read_log",
    "report",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOST = "the lease ended; somebody else may hold the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of an attempt, as its worker says."""

    lease: HeldLease
    outcome: Outcome
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What was written: the state after it, and the next try; no state means a lost lease."""

    lease: HeldLease
    state: RunState | None
    next_retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """The very ends that were written: of one run, others may have been told beside them."""

    by_told: dict[int, Ending] = field(default_factory=dict)
    """By the identity of what was told; somebody may have asked for the end meanwhile."""

    def add(self, told: Sequence[Ending], written: Sequence[Ending]) -> None:
        ends = {one.run: one for one in written}
        for one in told:
            # Of one run the first that is under a good lease is written.
            if (end := ends.get(one.run)) is not None and end.lease == one.lease:
                self.by_told[id(one)] = ends.pop(one.run)

    def of(self, ending: Ending | None) -> Ending | None:
        return None if ending is None else self.by_told.get(id(ending))


async def report(
    desk: Desk, tenant: TenantId, reports: Sequence[Report], *, roll: Callable[[], float]
) -> list[Settled]:
    """Write outcomes in one transaction, each under the fence of its lease; in the order given."""
    rolls = [roll() for _ in reports]
    tails = desk.entropy(len(reports) * TAIL_BYTES)
    offered: list[Offered] = []

    async def work(connection: Connection) -> list[Settled]:
        nonlocal offered
        freed = Freed()
        now = await desk.now(connection)
        settled: dict[int, Settled] = {}
        by_shard: dict[ShardId, list[int]] = {}
        for place, one in enumerate(reports):
            by_shard.setdefault(shard_of(one.lease.run), []).append(place)
        seal = await _sealing(desk, connection, tenant, reports)
        plain = all(is_plain(one) for one in reports)
        reading = _Reading(
            tenant=tenant, rules=NO_RULES if plain else await read_rules(connection, tenant)
        )
        for shard in sorted(by_shard):
            places = by_shard[shard]
            others = [reports[place].lease.run for place in places if not is_plain(reports[place])]
            await reading.read(connection, shard, others)
            endings = []
            for place in places:
                tail = int.from_bytes(tails[place * TAIL_BYTES : (place + 1) * TAIL_BYTES], "big")
                parcel = ParcelId(compose(to_ms(now), shard, tail))
                ending = reading.ending(reports[place], now, rolls[place], parcel)
                endings.append(None if ending is None else seal(ending))
            about = [reports[place] for place in places]
            written = await _write(connection, shard, about, endings, freed, margin=desk.margin)
            measured = [
                Measured(one.lease.run, one.lease.fence, one.metrics)
                for one, ending in zip(about, endings, strict=True)
                if one.metrics and written.of(ending)
            ]
            await note_metrics(connection, tenant, shard, measured, now=now)
            for place, ending in zip(places, endings, strict=True):
                settled[place] = await _settled(connection, reports[place], ending, written)
        offered = await release(connection, freed)
        return [settled[place] for place in range(len(reports))]

    answer = await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
    for one in offered:
        desk.hints.hint(*one.hint)
    return answer


async def _sealing(
    desk: Desk, connection: Connection, tenant: TenantId, reports: Sequence[Report]
) -> Callable[[Ending], Ending]:
    """What makes of the ends of attempts what goes into their rows."""
    outcomes = (one.outcome for one in reports)
    nothing = all(isinstance(one, Succeeded) and one.result is None for one in outcomes)
    if not desk.seals or nothing:
        return lambda ending: ending
    keys = await sealing_keys(desk, connection, tenant)
    return lambda ending: seal_ending(keys, replace(ending, result=keys.seal(ending.result)))


async def _write(
    connection: Connection,
    shard: ShardId,
    reports: Sequence[Report],
    endings: Sequence[Ending | None],
    freed: Freed,
    *,
    margin: timedelta,
) -> _Written:
    """Worker by worker, because every statement repeats who holds what."""
    written = _Written()
    first = Held(set())
    # The jobs of all of them before the parcels of any.
    await hold_jobs_of(connection, shard, first, [one for one in endings if one is not None])
    for worker in sorted({one.lease.worker for one in reports}):
        mine = [
            ending
            for one, ending in zip(reports, endings, strict=True)
            if ending is not None and one.lease.worker == worker
        ]
        if mine:
            # What is given back has not begun: it has used no token.
            unbegun = frozenset(one.parcel for one in mine if one.started_at is None)
            leases = {one.lease for one in mine}
            held = Held(leases, counted=unbegun, pausing=first.pausing)
            ends = await write_endings(connection, worker, shard, held, mine, margin=margin)
            written.add(mine, ends)
            freed.add(held.freed)
    return written


async def _settled(
    connection: Connection, one: Report, ending: Ending | None, written: _Written
) -> Settled:
    if (end := written.of(ending)) is not None:
        again = None if end.again is None else end.again.visible_at
        return Settled(lease=one.lease, state=end.state, next_retry_at=again)
    # Said before: the run carries this worker and fence already.
    if await rows.finished_by(connection, one.lease):
        found = await read_run(connection, one.lease.run)
        return Settled(lease=one.lease, state=None if found is None else found.state)
    return Settled(lease=one.lease, state=None)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What the ends of attempts need to know, read for all reports of a shard at once."""

    tenant: TenantId
    rules: Rules
    runs: Mapping[RunId, WantedRun] = field(default_factory=dict)
    specs: Mapping[RunId, RunSpec] = field(default_factory=dict)
    queues: Mapping[RunId, tuple[str, int]] = field(default_factory=dict)

    async def read(self, connection: Connection, shard: ShardId, runs: Sequence[RunId]) -> None:
        """Three or four statements, however many they are."""
        if runs:
            self.runs = await rows.wanted(connection, shard, runs)
            self.specs = await rows.specs(connection, shard, list(self.runs.values()))
            self.queues = await rows.queues_of(connection, shard, list(self.runs))

    def ending(self, one: Report, now: datetime, roll: float, parcel: ParcelId) -> Ending | None:
        """What to write after an attempt; nothing about a run that is over."""
        lease = one.lease
        started_at = EPOCH + timedelta(microseconds=lease.started_us)
        # One clock for both, that of the database; should it be set back, nothing ends before it
        # began.
        now = max(now, started_at)
        if is_plain(one):
            return Ending(
                run=lease.run,
                parcel=lease.parcel,
                fence=lease.fence,
                tenant=self.tenant,
                queue="",
                priority=0,
                job=None,
                handler=None,
                state=RunState.SUCCEEDED,
                attempt=lease.attempt,
                started_at=started_at,
                ended_at=now,
                result=result_of(one.outcome),
            )
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


def is_plain(one: Report) -> bool:
    """Whether it went well and nothing follows from that."""
    return isinstance(one.outcome, Succeeded) and one.lease.plain


async def extend(desk: Desk, tenant: TenantId, lease: HeldLease, *, by: timedelta) -> datetime:
    """Prolong one lease; until when."""

    async def work(connection: Connection) -> datetime:
        kept = await rows.renew(connection, lease.worker, [lease], ttl=by, now=desk.clock.stated())
        if (lease.parcel, lease.fence) not in kept or not await rows.holds(connection, lease):
            raise FencedOut(LOST)
        return kept[lease.parcel, lease.fence]

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)


async def note(desk: Desk, tenant: TenantId, lease: HeldLease, said: Note) -> None:
    """Keep progress or a checkpoint, while the lease is good."""

    async def work(connection: Connection) -> None:
        if not await rows.holds(connection, lease):
            raise FencedOut(LOST)
        kept = await sealed_note(desk, connection, tenant, said)
        await note_run(connection, tenant, lease, kept, now=desk.clock.now())

    await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)


async def read_checkpoint(desk: Desk, tenant: TenantId, run: RunId) -> bytes | None:
    """What an earlier attempt has kept for the next one."""

    async def work(connection: Connection) -> list[Note]:
        found = await read_notes(connection, shard_of(run), [run])
        return await open_notes(desk, connection, tenant, list(found.values()))

    kept = await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
    return kept[0].checkpoint if kept else None


async def add_logs(desk: Desk, tenant: TenantId, lease: HeldLease, lines: Sequence[LogLine]) -> int:
    """Add lines to the log of a run, while the lease is good."""

    async def work(connection: Connection) -> int:
        if not await rows.holds(connection, lease):
            raise FencedOut(LOST)
        kept = await sealed_lines(desk, connection, tenant, lines)
        return await append_logs(connection, tenant, lease, kept)

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=False, tenant=tenant)


async def read_log(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    after: int,
    attempt: int | None,
    most: int,
    levels: Sequence[str] = (),
    last: bool = False,
) -> list[LogLine]:
    """A page of a run's log: its first lines after one, or its last."""

    async def work(connection: Connection) -> list[LogLine]:
        lines = await read_logs(
            connection, run, after=after, attempt=attempt, most=most, levels=levels, last=last
        )
        return await open_lines(desk, connection, tenant, lines)

    return await desk.transact(work, tenant=tenant)
