"""Leasing from one source: parcels become held, their runs become work."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import ParcelId, RunId
from betimes.domain.leased import LeasedParcel, Source, WantedRun
from betimes.domain.spec import with_retry
from betimes.domain.terms import most_of
from betimes.domain.verdict import FULL
from betimes.engine.resolve import exhausted, unstarted, used_up
from betimes.ops.contents import Contents
from betimes.ops.turns import Turns
from betimes.rhythm import DatabaseTime
from betimes.store.admit import Offered
from betimes.store.handing import Handed, is_news, news_of
from betimes.store.lease import NO_BOUNDS
from betimes.store.parcels import Lot, Parcels
from betimes.store.release import Freed
from betimes.store.telling import News
from betimes.telemetry import Telemetry
from betimes.worker.execute import Executor, Work
from betimes.worker.finish import Reporter
from betimes.worker.held import HeldParcel, HeldParcels, trust_seconds
from betimes.worker.opening import any_sealed, opened
from betimes.worker.plan import Plan
from betimes.worker.plans import Plans
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.slots import Slots

PARCELS_MAX = 256
"""Most parcels of one claim."""


class Taken(NamedTuple):
    """How many runs came from where, which sources have nothing visible left, which had no turn."""

    runs: Counter[Source]
    drained: Sequence[Source]
    later: Mapping[Source, datetime]
    """Sources at a limit, and when it is worth asking them again."""
    passed_over: Sequence[Source] = ()


class Claims:
    """Leases parcels and hands their runs to the executor."""

    def __init__(
        self,
        *,
        parcels: Parcels,
        plans: Plans,
        held: HeldParcels,
        slots: Slots,
        executor: Executor,
        reporter: Reporter,
        clock: Clock,
        time: DatabaseTime,
        settings: WorkerSettings,
        telemetry: Telemetry,
        turns: Turns,
        offered: Callable[[Offered], None] = lambda _: None,
        signals: WorkerSignals = NO_SIGNALS,
        contents: Contents | None = None,
    ) -> None:
        self._contents = contents
        self._offered = offered
        self._turns = turns
        self._parcels = parcels
        self._plans = plans
        self._held = held
        self._slots = slots
        self._executor = executor
        self._reporter = reporter
        self._clock = clock
        self._time = time
        self._ttl = settings.lease_ttl
        self._telemetry = telemetry
        self._signals = signals

    async def take(
        self,
        sources: Sequence[Source],
        places: int,
        *,
        suspects: bool = False,
        bounds: Mapping[Source, datetime] = NO_BOUNDS,
    ) -> Taken:
        """Lease for places that the caller has reserved, from sources up to their bounds.

        Places that are not needed are free again afterwards, whatever happens. If the answer of
        the lease gets lost, the parcels are ours without our knowing: the heartbeat finds them.
        """
        used = 0
        try:
            with self._telemetry.span("worker.claim", sources=len(sources)) as span:
                span.expect_errors()  # the outage tells them, once
                asked_at = self._clock.monotonic()
                leased, later = await self._lease(sources, places, bounds, suspects=suspects)
                if not leased:
                    drained = [one for one in sources if one not in later]
                    return Taken(Counter(), drained, later)
                self._time.observe(leased[0].lease_until - self._ttl, asked_at=asked_at)
                used, work, news = await self._prepare(leased, asked_at)
                span.add(parcels=len(leased), runs=used)
        finally:
            self._slots.give_back(places - used)
        if used:
            self._executor.start(work)
        if news:
            with suppress(Unavailable):  # what runs already is not held up by the news of it
                await self._parcels.tell(news)
        self._signals.claimed(used)
        return _taken(sources, leased, places, later, bounds)

    async def _lease(
        self,
        sources: Sequence[Source],
        places: int,
        bounds: Mapping[Source, datetime],
        *,
        suspects: bool,
    ) -> Lot:
        rules = self._turns.rules
        return await self._parcels.lease(
            sources,
            bounds=bounds,
            limited={one for one in sources if rules.limited(one.tenant, one.queue)},
            slots=places,
            parcels_max=1 if suspects else parcels_max(sources),
            suspects=suspects,
            ttl=self._ttl,
            now=self._clock.stated(),
        )

    async def _prepare(
        self, leased: list[LeasedParcel], asked_at: float
    ) -> tuple[int, Work, list[News]]:
        """Read what there is to do; the parcels are held from here on."""
        since, everything = self._clock.monotonic(), leased
        wanted = await self._parcels.wanted(leased)
        plans = await self._plans.of(wanted)
        wanted, plans = await self._opened(leased, wanted, plans)
        if self._turns.rules.has_retries:
            plans = self._with_retries(leased, wanted, plans)
        refused: frozenset[ParcelId] = frozenset()
        if any(parcel.terms.is_gated for parcel in leased):
            leased, refused, kept = await self._let_in(leased, wanted, plans)
            wanted, plans = [run for run, _ in kept], [plan for _, plan in kept]
        if any(parcel.counted for parcel in everything):
            await self._return_tokens(everything, wanted)
        trusted_until = asked_at + trust_seconds(self._ttl)
        if self._clock.monotonic() >= trusted_until:
            # We were frozen, or the database was: somebody else may have them by now. What is
            # still ours is found by the heartbeat and given back.
            self._telemetry.event("worker.lease_lost", level="warning", found="claim")
            return 0, iter(()), []
        held = [
            HeldParcel(parcel, left=0, since=since, trusted_until=trusted_until)
            for parcel in leased
        ]
        await self._give_keys(held)
        homes = _homes(held, wanted)
        for home in homes:
            home.left += 1
        for parcel in held:
            self._held.add(parcel)
            if not parcel.left:
                self._reporter.unwanted(parcel)
        work = zip(wanted, homes, plans, strict=True)
        rules = self._turns.rules
        telling = any(is_news(parcel, rules) for parcel in leased)
        plain = not refused and all(parcel.deliveries == 1 for parcel in leased)
        if plain and not telling:
            return len(wanted), work, []
        left = list(work) if plain else self._charged(self._unrefused(work, refused))
        handed = (
            Handed(run, parcel.leased, plan.handler, run.attempt + 1) for run, parcel, plan in left
        )
        return len(left), iter(left), news_of(handed, rules) if telling else []

    async def _opened(
        self, leased: list[LeasedParcel], wanted: list[WantedRun], plans: list[Plan]
    ) -> tuple[list[WantedRun], list[Plan]]:
        if self._contents is None or not any_sealed(wanted, plans):
            return wanted, plans
        found = list(zip(wanted, plans, strict=True))
        both = await opened(self._contents, leased, found)
        return [run for run, _ in both], [plan for _, plan in both]

    async def _give_keys(self, held: list[HeldParcel]) -> None:
        """What seals the results of parcels, where results are sealed."""
        if self._contents is not None and self._contents.seals:
            for parcel in held:
                parcel.keys = await self._contents.keys(parcel.leased.tenant)

    async def _let_in(
        self, leased: list[LeasedParcel], wanted: list[WantedRun], plans: list[Plan]
    ) -> tuple[list[LeasedParcel], frozenset[ParcelId], list[tuple[WantedRun, Plan]]]:
        """Bring parcels with gates or lines in front of them.

        Returns the parcels that are still ours, those of them that are not to run, and the runs
        that are left. What nobody wants any more, somebody wants ended, or this worker cannot do
        needs no place and no token.
        """
        mosts = {
            run.id: most_of(plan.spec.options)
            for run, plan in zip(wanted, plans, strict=True)
            if run.cancel_at is None and not plan.unable
        }
        applicants = [
            parcel.applicant(mosts[parcel.runs[0]])
            for parcel in leased
            if parcel.terms.is_gated and parcel.runs[0] in mosts
        ]
        if not applicants:
            return leased, frozenset(), list(zip(wanted, plans, strict=True))
        answer = await self._parcels.admit(applicants, now=self._clock.stated())
        for one in answer.offered:
            self._offered(one)
        for parcel in leased:
            parcel.admitted = parcel.id in answer.admitted
        gone = {one.id for one in applicants} - answer.admitted - answer.refused
        ours = [parcel for parcel in leased if parcel.id not in gone]
        away = {parcel.runs[0] for parcel in leased if parcel.id in gone}
        kept = [(run, plan) for run, plan in zip(wanted, plans, strict=True) if run.id not in away]
        return ours, frozenset(answer.refused), kept

    def _with_retries(
        self, leased: list[LeasedParcel], wanted: list[WantedRun], plans: list[Plan]
    ) -> list[Plan]:
        """Plans of runs without a way to retry, with that of their queue."""
        policies = {
            run: self._turns.rules.queue(parcel.tenant, parcel.queue).retry
            for parcel in leased
            for run in parcel.runs
        }
        return [
            replace(plan, spec=with_retry(plan.spec, policies[run.id]))
            if policies[run.id] is not None
            else plan
            for run, plan in zip(wanted, plans, strict=True)
        ]

    async def _return_tokens(self, leased: list[LeasedParcel], wanted: list[WantedRun]) -> None:
        """What nobody wants any more, or is held at a gate, has used no token of a rate.

        What does not start for another reason gives its token back when its end is written.
        """
        started = {run.id for run in wanted}
        freed, rules = Freed(at=self._clock.stated()), self._turns.rules
        for parcel in leased:
            place = (parcel.tenant, parcel.queue)
            if parcel.counted and (rules.tenant(parcel.tenant).rate or rules.queue(*place).rate):
                freed.unused[place] += sum(run not in started for run in parcel.runs)
        freed.unused = +freed.unused
        await self._parcels.refund(freed)

    def _unrefused(self, work: Work, refused: frozenset[ParcelId]) -> Work:
        """Those that may run; the others would rather not run than wait."""
        for run, parcel, plan in work:
            if parcel.leased.id in refused:
                given = plan.given(run, parcel.leased)
                self._reporter.ended(parcel, unstarted(given, FULL, now=self._time.now()))
            else:
                yield run, parcel, plan

    def _charged(self, work: Work) -> list[tuple[WantedRun, HeldParcel, Plan]]:
        """Count the deliveries that came to nothing; what they have used up is not executed."""
        left: list[tuple[WantedRun, HeldParcel, Plan]] = []
        for run, parcel, plan in work:
            deliveries = parcel.leased.deliveries
            used = used_up(run, plan.spec, deliveries=deliveries)
            if used is not None:
                given = plan.given(run, parcel.leased)
                ending = exhausted(given, used=used, deliveries=deliveries, now=self._time.now())
                self._reporter.ended(parcel, ending)
            else:
                left.append((run._replace(attempt=run.attempt + deliveries - 1), parcel, plan))
        return left


def parcels_max(sources: Sequence[Source]) -> int:
    """Most parcels leased from each of some sources in one claim."""
    return PARCELS_MAX // len(sources)


def _taken(
    sources: Sequence[Source],
    leased: list[LeasedParcel],
    places: int,
    later: Mapping[Source, datetime],
    bounds: Mapping[Source, datetime],
) -> Taken:
    runs: Counter[Source] = Counter()
    parcels: Counter[Source] = Counter()
    for parcel in leased:
        source = parcel.source
        runs[source] += len(parcel.runs)
        parcels[source] += 1
    if runs.total() >= places:
        # There was no room to find the end of any, nor to come to the last ones at all.
        reached = max(place for place, source in enumerate(sources, 1) if source in runs)
        return Taken(runs, (), later, sources[reached:])
    most = parcels_max(sources)
    # Up to its bound a place has at least one, unless somebody else has it or nobody may.
    drained = [
        one for one in sources if parcels[one] < (1 if one in bounds else most) and one not in later
    ]
    return Taken(runs, drained, later)


def _homes(held: list[HeldParcel], wanted: list[WantedRun]) -> list[HeldParcel]:
    """For each run the parcel it came in."""
    if len(held) == 1:
        return held * len(wanted)
    homes: dict[RunId, HeldParcel] = {run: parcel for parcel in held for run in parcel.leased.runs}
    return [homes[run.id] for run in wanted]
