"""Leasing to workers that speak HTTP: the same rules as for ours, in one transaction.

Long because handing out, putting back and ending share one unpacked lease.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from betimes.domain.errors import Conflict, NotFound, Unavailable
from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId, WorkerId, shard_of, to_us
from betimes.domain.leased import (
    Applicant,
    Assignment,
    LeasedParcel,
    ParcelLease,
    Source,
    WantedRun,
)
from betimes.domain.spec import RunSpec, with_retry
from betimes.domain.terms import most_of
from betimes.domain.verdict import FULL
from betimes.engine.resolve import exhausted, refusal_of, unhandled, unstarted, used_up
from betimes.ops.checks import PAYLOAD_BYTES_MAX
from betimes.ops.contents import is_sealed, open_bytes
from betimes.ops.desk import Desk
from betimes.ops.sayings import open_notes
from betimes.ops.suspects import Offer, Suspects
from betimes.ops.turns import Turns, best_first
from betimes.store import remote as rows
from betimes.store.admit import Offered, admit
from betimes.store.ceilings import Ledger, close_ledger, open_ledger
from betimes.store.ending import Ending
from betimes.store.finish import Held, hold_jobs_of, write_endings
from betimes.store.handing import Handed, is_news, news_of
from betimes.store.lease import LeaseOrder
from betimes.store.pool import Connection, Lane
from betimes.store.release import Freed, release
from betimes.store.remote import LeasingWorker, RemoteWorker
from betimes.store.rules import NO_RULES, Rules, read_rules
from betimes.store.run_notes import Note, read_notes
from betimes.store.surplus import put_back_surplus
from betimes.store.telling import tell

PARCELS_MAX = 256
SOURCES_MAX = 64
"""Most places that one request leases from."""
AD_HOC = ShardId(-1)
"""Instead of a shard, for definitions that need no reading."""
ANSWER_BYTES_MAX = 16 << 20
"""Most bytes of payloads in one answer: a node holds several times as much while it is made."""
LIGHT_RUNS = ANSWER_BYTES_MAX // PAYLOAD_BYTES_MAX
"""So many runs are no more than that, whatever their payloads."""
ROUNDS_MAX = 3
"""How often a request leases again when nothing it leased was wanted or let in."""


class Given(NamedTuple):
    """A run that is handed out, and how it is to be done."""

    run: WantedRun
    spec: RunSpec
    note: Note | None = None


@dataclass(slots=True, kw_only=True)
class LeasedBatch:
    """Runs of one parcel that a worker holds now, all of them in the same attempt.

    Nearly always a parcel is one of them: what is packed together was tried as often.
    """

    lease: ParcelLease
    parcel: LeasedParcel
    runs: list[Given]


async def required(connection: Connection, tenant: TenantId, worker: WorkerId) -> RemoteWorker:
    """The worker of the tenant, or a refusal."""
    found = await rows.read_worker(connection, tenant, worker)
    if found is None:
        raise NotFound("there is no such worker")
    return found


async def lease_parcels(
    desk: Desk,
    tenant: TenantId,
    worker: WorkerId,
    *,
    queues: Sequence[str] | None,
    handlers: Sequence[str] = (),
    most: int,
    ttl: timedelta,
    turns: Turns,
    suspects: Suspects,
    bound: Collection[str] | None = None,
) -> list[LeasedBatch]:
    """Lease up to `most` runs from the worker's queues; nothing when nothing waits.

    Queues and fairness keys share by the same rule as for our own workers; `turns` remembers who
    has had how much, and `suspects` who is to be handed what has cost several workers. A worker
    that says which handlers it has, now or when it registered, gets no other runs. `bound` are the
    queues of a key that is bound to some: it knows only workers within them.
    """
    lease = Leasing(
        desk=desk, tenant=tenant, worker=worker, ttl=ttl, turns=turns, suspects=suspects
    )

    async def work(connection: Connection) -> list[LeasedBatch]:
        found = await rows.read_leasing_worker(connection, tenant, worker)
        if found is None or (bound is not None and not set(found.queues) <= set(bound)):
            raise NotFound("there is no such worker")
        if found.draining:
            raise Conflict("the worker was told to finish", code="worker_draining")
        wanted = [queue for queue in (queues or found.queues) if queue in found.queues]
        lease.handlers = frozenset(handlers or found.handlers)
        return await lease.take(connection, found, wanted, most)

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
    suspects: Suspects
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

    async def take(
        self, connection: Connection, worker: LeasingWorker, queues: Sequence[str], most: int
    ) -> list[LeasedBatch]:
        """Lease what this worker may have now."""
        self.offered, self.put_back, self.had, self.following = [], [], Counter(), {}
        self.rules = await read_rules(connection, self.tenant)
        limited = {queue for queue in queues if self.rules.limited(self.tenant, queue)}
        places = [(self.tenant, queue) for queue in limited]
        self.ledger = await open_ledger(connection, places, now=self.desk.clock.stated())
        taken = await self._offered(connection, worker, queues, most)
        await close_ledger(connection, self.ledger)
        await self._open(connection, taken)
        if any(is_news(batch.parcel, self.rules) for batch in taken):
            handed = (
                Handed(one.run, batch.parcel, one.run.handler, batch.lease.attempt)
                for batch in taken
                for one in batch.runs
            )
            await tell(connection, news_of(handed, self.rules))
        return taken

    async def _open(self, connection: Connection, taken: Sequence[LeasedBatch]) -> None:
        """Payloads and notes as they were given; a worker that speaks HTTP has no keys."""
        every = [one for batch in taken for one in batch.runs]
        noted = [one.note for one in every if one.note is not None]
        specs = {id(one.spec): one.spec for one in every if is_sealed(one.spec.payload)}
        own = [one.run for one in every if is_sealed(one.run.payload)]
        if not (noted or specs or own):
            return
        notes = iter(await open_notes(self.desk, connection, self.tenant, noted))
        # A payload that every run has its own instead of is nobody's to read.
        read = {id(one.spec) for one in every if one.run.payload is None}
        sealed = [one.payload if name in read else None for name, one in specs.items()]
        sealed += [run.payload for run in own]
        opened = await open_bytes(self.desk, connection, self.tenant, sealed)
        given = {
            name: replace(spec, payload=payload)
            for (name, spec), payload in zip(specs.items(), opened, strict=False)
        }
        payloads = {run.id: payload for run, payload in zip(own, opened[len(specs) :], strict=True)}
        for batch in taken:
            batch.runs = [
                Given(
                    one.run._replace(payload=payloads.get(one.run.id, one.run.payload)),
                    given.get(id(one.spec), one.spec),
                    None if one.note is None else next(notes),
                )
                for one in batch.runs
            ]

    async def _offered(
        self, connection: Connection, worker: LeasingWorker, queues: Sequence[str], most: int
    ) -> list[LeasedBatch]:
        """Ordinary parcels or one suspect, as far as what the worker holds allows."""
        now, held = self.desk.clock.monotonic(), worker.parcels
        offer = self.suspects.offer(self.worker, held=held, suspects=worker.suspects, now=now)
        if offer is Offer.LOOK:
            found = await self._ready(connection, queues, suspects=True)
            offer = self.suspects.looked(self.worker, found=bool(found), held=held, now=now)
            if offer is Offer.LOOK and (taken := await self._take(connection, queues, 1, True)):
                return taken
        if offer is Offer.NOTHING:
            return []
        taken = await self._take(connection, queues, most, False)
        if not taken and offer is Offer.EITHER:
            taken = await self._take(connection, queues, 1, True)
        return taken

    async def _take(
        self, connection: Connection, queues: Sequence[str], most: int, suspects: bool
    ) -> list[LeasedBatch]:
        """Lease; more often if nothing came of what was leased."""
        for _ in range(ROUNDS_MAX):
            parcels = await self._lease(connection, queues, most, suspects=suspects)
            if not parcels:
                break
            taken = await self._unpack(connection, parcels)
            self._account(parcels, taken)
            if taken:
                return taken
        return []

    def _account(self, parcels: Sequence[LeasedParcel], taken: Sequence[LeasedBatch]) -> None:
        """What was leased and is not handed out has used no token, and nobody's turn."""
        handed_out: Counter[ParcelId] = Counter()
        for batch in taken:
            handed_out[batch.lease.parcel] += len(batch.runs)
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
        order = LeaseOrder(
            worker=self.worker,
            parcels_max=1 if suspects else PARCELS_MAX,
            suspects=suspects,
            ttl=self.ttl,
            now=self.desk.clock.stated(),
            handlers=self._able,
        )
        ranks = await self._ready(connection, queues, suspects=suspects)
        self.turns.rules = self.rules
        sources, bounds = best_first(self.turns.pick(list(ranks), most=SOURCES_MAX), ranks)
        limited = {one for one in sources if self.rules.limited(one.tenant, one.queue)}
        lot = await order.lease(connection, sources, most, self.ledger, limited, bounds)
        return lot.leased

    @property
    def _able(self) -> list[str] | None:
        """What begins with a colon is ours to do, whoever says that it can."""
        return [name for name in self.handlers if name[:1] != ":"] if self.handlers else None

    async def _ready(
        self, connection: Connection, queues: Sequence[str], *, suspects: bool
    ) -> dict[Source, datetime]:
        return await rows.find_ready(
            connection,
            self.tenant,
            queues,
            handlers=self._able,
            suspects=suspects,
            now=self.desk.clock.stated(),
        )

    async def _unpack(
        self, connection: Connection, parcels: Sequence[LeasedParcel]
    ) -> list[LeasedBatch]:
        """Read what there is to do; what is not to be done ends here."""
        now = parcels[0].lease_until - self.ttl
        surplus = await self._surplus(connection, parcels, now)
        parcels = [one for one in parcels if not surplus.issuperset(one.runs)]
        runs = await rows.wanted_in(connection, parcels, without=surplus)
        specs = self._with_retries(parcels, await self._specs(connection, runs))
        found: list[LeasedBatch] = []
        unwanted = Freed()
        applicants: list[Applicant] = []
        for parcel in sorted(parcels, key=attrgetter("shard")):
            mine = [runs[run] for run in parcel.runs if run in runs]
            left, endings = self._sorted(parcel, mine, specs, now)
            await self._end(connection, parcel, endings, unwanted, empty=not mine)
            if left and parcel.terms.is_gated:
                applicants.append(parcel.applicant(most_of(left[0].spec.options)))
            found += _batches(self.worker, parcel, left, now)
        if applicants:
            found = await self._let_in(connection, applicants, found, unwanted, now=now)
        self.offered += await release(connection, unwanted)
        return await self._noted(connection, found)

    async def _surplus(
        self, connection: Connection, parcels: Sequence[LeasedParcel], now: datetime
    ) -> set[RunId]:
        """What is too heavy for one answer beside the others waits on, and is nobody's attempt."""
        if sum(len(parcel.runs) for parcel in parcels) <= LIGHT_RUNS:
            return set()
        gone = await put_back_surplus(connection, parcels, most=ANSWER_BYTES_MAX)
        self.put_back += [
            (parcel.source, now) for parcel in parcels if not gone.isdisjoint(parcel.runs)
        ]
        return gone

    async def _specs(
        self, connection: Connection, runs: Mapping[RunId, WantedRun]
    ) -> dict[RunId, RunSpec]:
        """How each of the runs is to be done; those of jobs are read shard by shard."""
        by_shard: dict[ShardId, list[WantedRun]] = {}
        for run in runs.values():
            by_shard.setdefault(shard_of(run.id) if run.job else AD_HOC, []).append(run)
        specs: dict[RunId, RunSpec] = {}
        for shard in sorted(by_shard):
            specs |= await rows.specs(connection, shard, by_shard[shard], known=self.desk.specs)
        return specs

    def _with_retries(
        self, parcels: Sequence[LeasedParcel], specs: dict[RunId, RunSpec]
    ) -> dict[RunId, RunSpec]:
        """Definitions without a way to retry, with that of their queue; what was one stays one."""
        made: dict[tuple[str, int], RunSpec] = {}
        found = dict(specs)
        for parcel in parcels if self.rules.has_retries else ():
            policy = self.rules.queue(parcel.tenant, parcel.queue).retry
            for run in parcel.runs if policy is not None else ():
                spec = specs.get(run)
                if spec is not None:
                    key = parcel.queue, id(spec)
                    if key not in made:
                        made[key] = with_retry(spec, policy)
                    found[run] = made[key]
        return found

    async def _noted(self, connection: Connection, found: list[LeasedBatch]) -> list[LeasedBatch]:
        """With what was noted about runs in earlier attempts, where there was any."""
        begun: dict[ShardId, list[RunId]] = {}
        for batch in found:
            lost = batch.parcel.deliveries > 1
            for one in batch.runs:
                run = one.run
                if lost or run.attempt or run.reason or run.first_started_at is not None:
                    begun.setdefault(batch.parcel.shard, []).append(run.id)
        notes: dict[RunId, Note] = {}
        for shard in sorted(begun):
            notes |= await read_notes(connection, shard, begun[shard])
        if notes:
            for batch in found:
                batch.runs = [one._replace(note=notes.get(one.run.id)) for one in batch.runs]
        return found

    def _sorted(
        self,
        parcel: LeasedParcel,
        runs: Sequence[WantedRun],
        specs: Mapping[RunId, RunSpec],
        now: datetime,
    ) -> tuple[list[Given], list[Ending]]:
        """What is left to be handed out, and the ends of the others."""
        left: list[Given] = []
        unable: list[Assignment] = []
        endings: list[Ending] = []
        deliveries = parcel.deliveries
        for run in runs:
            spec = specs[run.id]
            why = refusal_of(run, spec.start_deadline, now, deliveries=deliveries)
            if why is not None:
                endings.append(unstarted(_given(parcel, run, spec), why, now=now))
            elif not self._can(run, spec):
                charged = run._replace(attempt=run.attempt + deliveries - 1)
                unable.append(_given(parcel, charged, spec))
            elif (used := used_up(run, spec, deliveries=deliveries)) is not None:
                given = _given(parcel, run, spec)
                endings.append(exhausted(given, used=used, deliveries=deliveries, now=now))
            else:
                left.append(Given(run, spec))
        return left, endings + self._put_back(parcel, unable, now)

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
        applicants: Sequence[Applicant],
        found: list[LeasedBatch],
        unwanted: Freed,
        *,
        now: datetime,
    ) -> list[LeasedBatch]:
        """What passes its gate and line; the rest is held, or ends because it would not wait."""
        answer = await admit(connection, self.worker, applicants, now=self.desk.clock.stated())
        self.offered += answer.offered
        for batch in found:
            if batch.lease.parcel in answer.refused:
                endings = [
                    unstarted(_given(batch.parcel, one.run, one.spec), FULL, now=now)
                    for one in batch.runs
                ]
                await self._end(connection, batch.parcel, endings, unwanted)
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


def _batches(
    worker: WorkerId, parcel: LeasedParcel, left: Sequence[Given], now: datetime
) -> list[LeasedBatch]:
    """What is left of a parcel, by the attempt it is in and by what follows from its end."""
    plain: dict[int, bool] = {}
    alike: dict[tuple[int, bool], list[Given]] = {}
    for one in left:
        spec = one.spec
        is_plain = plain.get(id(spec))
        if is_plain is None:
            is_plain = plain[id(spec)] = spec.is_plain
        alike.setdefault((one.run.attempt + parcel.deliveries, is_plain), []).append(one)
    return [
        LeasedBatch(
            lease=ParcelLease(
                parcel.id, worker, parcel.fence, attempt, to_us(now), is_plain, parcel.shard
            ),
            parcel=parcel,
            runs=runs,
        )
        for (attempt, is_plain), runs in alike.items()
    ]
