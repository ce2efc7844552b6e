"""Leasing to workers that speak HTTP: the same rules as for ours, in one transaction.

Long because handing out, putting back and ending share one unpacked lease.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from betimes.domain.errors import Conflict, NotFound, Unavailable
from betimes.domain.ids import ShardId, TenantId, WorkerId, to_us
from betimes.domain.leased import Applicant, Assignment, LeasedParcel, Source, WantedRun
from betimes.domain.spec import RunSpec, with_retry
from betimes.domain.terms import most_of
from betimes.engine.resolve import FULL, exhausted, refusal_of, unhandled, unstarted, used_up
from betimes.ops.contents import is_sealed, open_bytes
from betimes.ops.desk import Desk
from betimes.ops.sayings import open_notes
from betimes.ops.turns import Turns, best_first
from betimes.store import remote as rows
from betimes.store.admit import Offered, admit
from betimes.store.ceilings import Ledger, close_ledger, open_ledger
from betimes.store.ending import Ending
from betimes.store.finish import Held, hold_jobs_of, write_endings
from betimes.store.handing import Handed, news_of
from betimes.store.lease import LeaseOrder
from betimes.store.pool import Connection, Lane
from betimes.store.release import Freed, release
from betimes.store.remote import HeldLease, RemoteWorker
from betimes.store.rules import NO_RULES, Rules, read_rules
from betimes.store.run_notes import Note, read_notes
from betimes.store.telling import tell

PARCELS_MAX = 100
SOURCES_MAX = 64
"""Most places that one request leases from."""
ROUNDS_MAX = 3
"""How often a request leases again when nothing it leased was wanted or let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A run that a remote worker holds now."""

    lease: HeldLease
    run: WantedRun
    spec: RunSpec
    parcel: LeasedParcel
    note: Note | None

    @property
    def queue(self) -> str:
        """Where it waited."""
        return self.parcel.queue

    @property
    def priority(self) -> int:
        """How urgent it is."""
        return self.parcel.priority

    @property
    def expires_at(self) -> datetime:
        """Until when the worker holds it."""
        return self.parcel.lease_until


async def required(connection: Connection, tenant: TenantId, worker: WorkerId) -> RemoteWorker:
    """The worker of the tenant, or a refusal."""
    found = await rows.read_worker(connection, tenant, worker)
    if found is None:
        raise NotFound("there is no such worker")
    return found


async def lease_runs(
    desk: Desk,
    tenant: TenantId,
    worker: WorkerId,
    *,
    queues: Sequence[str] | None,
    handlers: Sequence[str] = (),
    most: int,
    ttl: timedelta,
    turns: Turns,
) -> list[Leased]:
    """Lease up to `most` runs from the worker's queues; nothing when nothing waits.

    Queues and fairness keys share by the same rule as for our own workers; `turns` remembers who
    has had how much. Parcels whose workers died repeatedly are leased alone, and only when nothing
    else waits. A worker that says which handlers it has, now or when it registered, gets no other
    runs.
    """
    lease = Leasing(desk=desk, tenant=tenant, worker=worker, ttl=ttl, turns=turns)

    async def work(connection: Connection) -> list[Leased]:
        found = await required(connection, tenant, worker)
        if found.draining:
            raise Conflict("the worker was told to finish", code="worker_draining")
        wanted = [queue for queue in (queues or found.queues) if queue in found.queues]
        lease.handlers = frozenset(handlers or found.handlers)
        return await lease.take(connection, wanted, most)

    leased = await desk.database.transact(work, lane=Lane.API, repeatable=True, tenant=tenant)
    if lease.following:
        # What it leased is leased; should this fail, the leases of these lapse, and whoever leases
        # them next ends them.
        with suppress(Unavailable):
            lease.offered += await desk.database.transact(
                lease.end_following, lane=Lane.API, repeatable=True, tenant=tenant
            )
    lease.conclude()
    return leased


@dataclass(slots=True, kw_only=True)
class Leasing:
    """One request for work: lease, drop what nobody wants, pass the gates; one transaction.

    A job with a fixed delay counts from the end of its run, and one may be paused after failures:
    who ends such a run instead of handing it out writes about the job, which comes before parcels
    in the order of locks. Such runs stay leased, and are ended in a second transaction.
    """

    desk: Desk
    tenant: TenantId
    worker: WorkerId
    ttl: timedelta
    turns: Turns
    handlers: frozenset[str] = frozenset()
    offered: list[Offered] = field(default_factory=list)
    rules: Rules = NO_RULES
    ledger: Ledger = field(default_factory=lambda: Ledger(None))
    put_back: list[tuple[Source, datetime]] = field(default_factory=list)
    """Where something waits for others that this worker cannot do, and from when on."""
    had: Counter[Source] = field(default_factory=Counter)
    """How many runs are handed out, by where they came from."""
    following: dict[ShardId, list[Ending]] = field(default_factory=dict)
    """Ends that concern a job, by shard: leased, and still to be written."""

    async def take(self, connection: Connection, queues: Sequence[str], most: int) -> list[Leased]:
        """Ordinary parcels, else one suspect; more often if nothing came of what was leased."""
        self.offered, self.put_back, self.had, self.following = [], [], Counter(), {}
        self.rules = await read_rules(connection, self.tenant)
        limited = {queue for queue in queues if self.rules.limited(self.tenant, queue)}
        places = [(self.tenant, queue) for queue in limited]
        self.ledger = await open_ledger(connection, places, now=self.desk.clock.stated())
        taken = await self._opened(connection, await self._take(connection, queues, most))
        await close_ledger(connection, self.ledger)
        if taken:
            handed = (
                Handed(one.run, one.parcel, one.run.handler, one.lease.attempt) for one in taken
            )
            await tell(connection, news_of(handed, self.rules))
        return taken

    async def _opened(self, connection: Connection, taken: list[Leased]) -> list[Leased]:
        """With what was given and noted as it was; a worker that speaks HTTP has no keys."""
        given = [one.spec.payload if one.run.payload is None else one.run.payload for one in taken]
        noted = [one.note for one in taken if one.note is not None]
        notes = iter(await open_notes(self.desk, connection, self.tenant, noted))
        opened = await open_bytes(self.desk, connection, self.tenant, given)
        return [
            replace(
                one,
                run=one.run._replace(payload=payload) if is_sealed(before) else one.run,
                note=None if one.note is None else next(notes),
            )
            for one, before, payload in zip(taken, given, opened, strict=True)
        ]

    async def _take(self, connection: Connection, queues: Sequence[str], most: int) -> list[Leased]:
        for suspects in (False, True):
            for _ in range(ROUNDS_MAX):
                free = 1 if suspects else most
                parcels = await self._lease(connection, queues, free, suspects=suspects)
                if not parcels:
                    break
                taken = await self._unpack(connection, parcels)
                self._account(parcels, taken)
                if taken:
                    return taken
        return []

    def _account(self, parcels: Sequence[LeasedParcel], taken: Sequence[Leased]) -> None:
        """What was leased and is not handed out has used no token, and nobody's turn."""
        handed_out = Counter(one.lease.parcel for one in taken)
        for parcel in parcels:
            self.had[parcel.source] += handed_out[parcel.id]
            unused = len(parcel.runs) - handed_out[parcel.id]
            if parcel.counted and unused:
                self.ledger.take((parcel.tenant, parcel.queue), -unused)

    def conclude(self) -> None:
        """After the commit: who has had how much, and hints about those this made room for."""
        self.turns.rules = self.rules
        self.turns.charge(+self.had)
        for one in self.offered:
            self.desk.hints.hint(*one.hint)
        for source, at in self.put_back:
            self.desk.hints.hint(source.shard, source.queue, source.tenant, at, source.fair)

    async def _lease(
        self, connection: Connection, queues: Sequence[str], most: int, *, suspects: bool
    ) -> list[LeasedParcel]:
        """From one place after the other until the worker has what it can carry."""
        now = self.desk.clock.stated()
        # What begins with a colon is ours to do, whoever says that it can.
        able = [name for name in self.handlers if name[:1] != ":"] if self.handlers else None
        order = LeaseOrder(
            worker=self.worker,
            parcels_max=1 if suspects else PARCELS_MAX,
            suspects=suspects,
            ttl=self.ttl,
            now=now,
            handlers=able,
        )
        ranks = await rows.find_ready(
            connection, self.tenant, queues, handlers=able, suspects=suspects, now=now
        )
        self.turns.rules = self.rules
        sources, bounds = best_first(self.turns.pick(list(ranks), most=SOURCES_MAX), ranks)
        limited = {one for one in sources if self.rules.limited(one.tenant, one.queue)}
        lot = await order.lease(connection, sources, most, self.ledger, limited, bounds)
        return lot.leased

    async def _unpack(
        self, connection: Connection, parcels: Sequence[LeasedParcel]
    ) -> list[Leased]:
        now = parcels[0].lease_until - self.ttl
        found: list[Leased] = []
        unwanted = Freed()
        applicants: list[Applicant] = []
        for shard in sorted({parcel.shard for parcel in parcels}):
            here = [parcel for parcel in parcels if parcel.shard == shard]
            runs = await rows.wanted(connection, shard, [run for one in here for run in one.runs])
            specs = await rows.specs(connection, shard, list(runs.values()))
            notes = await read_notes(connection, shard, list(runs)) if runs else {}
            for parcel in here:
                mine = [runs[run] for run in parcel.runs if run in runs]
                given = [_given(parcel, run, self._spec(parcel, specs[run.id])) for run in mine]
                left, endings = self._sorted(parcel, given, now)
                await self._end(connection, parcel, endings, unwanted, empty=not mine)
                if left and parcel.terms.is_gated:
                    applicants.append(parcel.applicant(most_of(left[0].spec.options)))
                found += [
                    _leased(self.worker, parcel, one.run, one.spec, notes.get(one.run.id), now)
                    for one in left
                ]
        if applicants:
            found = await self._let_in(connection, parcels, applicants, found, unwanted, now=now)
        self.offered += await release(connection, unwanted)
        return found

    def _sorted(
        self, parcel: LeasedParcel, given: Sequence[Assignment], now: datetime
    ) -> tuple[list[Assignment], list[Ending]]:
        """What is left to be handed out, and the ends of the others."""
        left: list[Assignment] = []
        unable: list[Assignment] = []
        endings: list[Ending] = []
        deliveries = parcel.deliveries
        for one in given:
            run, spec = one.run, one.spec
            why = refusal_of(run, spec.start_deadline, now, deliveries=deliveries)
            if why is not None:
                endings.append(unstarted(one, why, now=now))
            elif not self._can(run, spec):
                charged = run._replace(attempt=run.attempt + deliveries - 1)
                unable.append(one._replace(run=charged))
            elif (used := used_up(run, spec, deliveries=deliveries)) is not None:
                endings.append(exhausted(one, used=used, deliveries=deliveries, now=now))
            else:
                left.append(one)
        return left, endings + self._put_back(parcel, unable, now)

    def _spec(self, parcel: LeasedParcel, spec: RunSpec) -> RunSpec:
        """With the queue's way to retry, if it has none of its own."""
        return with_retry(spec, self.rules.queue(parcel.tenant, parcel.queue).retry)

    def _can(self, run: WantedRun, spec: RunSpec) -> bool:
        if spec.target:
            return False  # a request: ours to send, with the guard, the gates and the signature
        return not self.handlers or (run.handler or spec.handler) in self.handlers

    def _put_back(
        self, parcel: LeasedParcel, unable: Sequence[Assignment], now: datetime
    ) -> list[Ending]:
        """What this worker cannot do waits, uncounted, for those who can."""
        if not unable:
            return []
        self.put_back.append((parcel.source, now))
        names = self.desk.parcel_ids([now] * len(unable), parcel.shard)
        # Nobody wants their end, which this transaction has looked at, so their jobs wait on.
        return [
            replace(unhandled(one, now=now, parcel_id=name), follow=None)
            for one, name in zip(unable, names, strict=True)
        ]

    async def _let_in(
        self,
        connection: Connection,
        parcels: Sequence[LeasedParcel],
        applicants: Sequence[Applicant],
        found: list[Leased],
        unwanted: Freed,
        *,
        now: datetime,
    ) -> list[Leased]:
        """What passes its gate and line; the rest is held, or ends because it would not wait."""
        answer = await admit(connection, self.worker, applicants, now=self.desk.clock.stated())
        self.offered += answer.offered
        by_id = {parcel.id: parcel for parcel in parcels}
        for one in [one for one in found if one.lease.parcel in answer.refused]:
            parcel = by_id[one.lease.parcel]
            ending = unstarted(_given(parcel, one.run, one.spec), FULL, now=now)
            await self._end(connection, parcel, [ending], unwanted)
        gone = {one.id for one in applicants} - answer.admitted
        return [one for one in found if one.lease.parcel not in gone]

    async def _end(
        self,
        connection: Connection,
        parcel: LeasedParcel,
        endings: Sequence[Ending],
        unwanted: Freed,
        *,
        empty: bool = False,
    ) -> None:
        """End runs instead of handing them out, unless that is for later; an empty parcel goes."""
        if empty:
            await rows.drop_parcel(connection, parcel.shard, parcel.id)
            unwanted.note(parcel.tenant, parcel.queue, parcel.terms)
        later = [one for one in endings if one.concerns_job]
        if later:
            self.following.setdefault(parcel.shard, []).extend(later)
            endings = [one for one in endings if not one.concerns_job]
        if endings:
            held = Held({(parcel.id, parcel.fence)})
            await write_endings(
                connection, self.worker, parcel.shard, held, endings, margin=self.desk.margin
            )
            unwanted.add(held.freed)

    async def end_following(self, connection: Connection) -> list[Offered]:
        """Write what is left to write, under the leases just taken; whom that makes room for.

        Tokens of what did not start are back already: it was never handed out.
        """
        freed = Freed()
        for shard in sorted(self.following):
            endings = self.following[shard]
            held = Held({one.lease for one in endings})
            await hold_jobs_of(connection, shard, held, endings)
            await write_endings(
                connection, self.worker, shard, held, endings, margin=self.desk.margin
            )
            freed.add(held.freed)
        return await release(connection, freed)


def _given(parcel: LeasedParcel, run: WantedRun, spec: RunSpec) -> Assignment:
    return Assignment(run, parcel, spec, run.handler, run.handler or spec.needs)


def _leased(
    worker: WorkerId,
    parcel: LeasedParcel,
    run: WantedRun,
    spec: RunSpec,
    note: Note | None,
    now: datetime,
) -> Leased:
    return Leased(
        lease=HeldLease(
            run=run.id,
            parcel=parcel.id,
            worker=worker,
            fence=parcel.fence,
            attempt=run.attempt + parcel.deliveries,
            started_us=to_us(now),
            plain=spec.is_plain,
        ),
        run=run,
        spec=spec,
        parcel=parcel,
        note=note,
    )
