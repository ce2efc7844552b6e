"""What remote workers report about the runs they hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from betimes.domain.errors import FencedOut
from betimes.domain.failure import fingerprint, to_json
from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId, compose, shard_of, to_ms
from betimes.domain.outcome import (
    Outcome,
    Released,
    Succeeded,
    facts_of,
    kind_of,
    result_of,
)
from betimes.domain.retry import Decision, Effort, Finish, Retry, decide
from betimes.domain.spec import RunSpec, with_retry
from betimes.domain.states import RunState
from betimes.ops.contents import sealing_keys
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.sayings import open_lines, seal_ending, sealed_lines, sealed_note
from betimes.store import remote as rows
from betimes.store.admit import Offered
from betimes.store.ending import Again, Attempted, DeadLetter, Ending, follow_of
from betimes.store.finish import Held, hold_jobs_of, write_endings
from betimes.store.parcels import WantedRun
from betimes.store.pool import Connection, Lane
from betimes.store.release import Freed, release
from betimes.store.remote import HeldLease
from betimes.store.rules import read_rules
from betimes.store.run_notes import (
    LogLine,
    Measured,
    Note,
    append_logs,
    note_metrics,
    note_run,
    read_logs,
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
    "read_log",
    "report",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOST = "the lease ended; somebody else may hold the run"
RUN_CANCELLED = "RUN_CANCELLED"


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

    by_run: dict[RunId, Ending] = field(default_factory=dict)

    def add(self, endings: Sequence[Ending]) -> None:
        self.by_run.update((one.run, one) for one in endings)

    def has(self, ending: Ending | None) -> bool:
        return ending is not None and self.by_run.get(ending.run) is ending


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
        for shard in sorted(by_shard):
            places = by_shard[shard]
            endings = []
            for place in places:
                tail = int.from_bytes(tails[place * TAIL_BYTES : (place + 1) * TAIL_BYTES], "big")
                parcel = ParcelId(compose(to_ms(now), shard, tail))
                ending = await _ending(
                    connection, tenant, reports[place], now, rolls[place], parcel
                )
                endings.append(None if ending is None else seal(ending))
            about = [reports[place] for place in places]
            written = await _write(connection, shard, about, endings, freed, margin=desk.margin)
            measured = [
                Measured(one.lease.run, one.lease.fence, one.metrics)
                for one, ending in zip(about, endings, strict=True)
                if one.metrics and written.has(ending)
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
            written.add(await write_endings(connection, worker, shard, held, mine, margin=margin))
            freed.add(held.freed)
    return written


async def _settled(
    connection: Connection, one: Report, ending: Ending | None, written: _Written
) -> Settled:
    if ending is not None and written.has(ending):
        again = None if ending.again is None else ending.again.visible_at
        return Settled(lease=one.lease, state=ending.state, next_retry_at=again)
    # Said before: the run carries this worker and fence already.
    if await rows.finished_by(connection, one.lease):
        found = await read_run(connection, one.lease.run)
        return Settled(lease=one.lease, state=None if found is None else found.state)
    return Settled(lease=one.lease, state=None)


async def _ending(
    connection: Connection,
    tenant: TenantId,
    one: Report,
    now: datetime,
    roll: float,
    parcel: ParcelId,
) -> Ending | None:
    lease = one.lease
    started_at = EPOCH + timedelta(microseconds=lease.started_us)
    # One clock for both, that of the database; should it be set back, nothing ends before it began.
    now = max(now, started_at)
    if isinstance(one.outcome, Succeeded) and lease.plain:
        return Ending(
            run=lease.run,
            parcel=lease.parcel,
            fence=lease.fence,
            tenant=tenant,
            queue="",
            priority=0,
            job=None,
            handler=None,
            state=RunState.SUCCEEDED,
            attempt=lease.attempt,
            started_at=started_at,
            ended_at=now,
            result=one.outcome.result,
        )
    runs = await rows.wanted(connection, shard_of(lease.run), [lease.run])
    run = runs.get(lease.run)
    stored = await read_run(connection, lease.run)
    if run is None or stored is None:
        return None
    spec = (await rows.specs(connection, shard_of(lease.run), [run]))[run.id]
    rules = await read_rules(connection, tenant)
    spec = with_retry(spec, rules.queue(tenant, stored.queue).retry)
    effort = Effort(lease.attempt, run.first_started_at or started_at)
    decision = decide(one.outcome, effort, spec.retry, now, roll)
    if run.cancel_at is not None and not isinstance(one.outcome, Succeeded):
        # Whoever was asked to end and did so has ended it, however the worker puts it.
        decision = Finish(RunState.CANCELLED, RUN_CANCELLED)
    whose = _Whose(tenant=tenant, queue=stored.queue, priority=stored.priority, run=run, spec=spec)
    return whose.ending(one, decision, parcel, started_at=started_at, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whose:
    """A run with everything an ending needs to know about it."""

    tenant: TenantId
    queue: str
    priority: int
    run: WantedRun
    spec: RunSpec

    def ending(
        self,
        one: Report,
        decision: Decision,
        parcel: ParcelId,
        *,
        started_at: datetime,
        now: datetime,
    ) -> Ending:
        """What to write after an attempt."""
        lease, error, again = one.lease, facts_of(one.outcome), None
        attempt = lease.attempt
        match decision:
            case Retry(at=at, counts=counts, reason=reason):
                state, again = RunState.RETRY_WAIT, Again(parcel, at, self.run.handler)
                attempt = lease.attempt if counts else self.run.attempt
            case Finish(state=state, reason=reason):
                pass
            case _:
                assert_never(decision)
        return Ending(
            run=lease.run,
            parcel=lease.parcel,
            fence=lease.fence,
            tenant=self.tenant,
            queue=self.queue,
            priority=self.priority,
            job=self.run.job,
            handler=self.run.handler,
            state=state,
            attempt=attempt,
            started_at=None if isinstance(one.outcome, Released) else started_at,
            ended_at=now,
            result=result_of(one.outcome),
            error=None if error is None else to_json(error),
            reason=reason or None,
            attempted=None
            if error is None
            else Attempted(kind_of(one.outcome), again.visible_at if again else None),
            dead=DeadLetter(fingerprint(error), reason) if state is RunState.DEAD else None,
            again=again,
            follow=None if again else follow_of(self.run, self.spec.fixed_delay, now),
            is_wanted=self.spec.tells_success,
        )


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
