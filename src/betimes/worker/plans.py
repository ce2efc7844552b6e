"""How to execute the runs of one definition, worked out once and kept.

A definition never changes under its (job, revision), so nothing kept here can be stale. Of a job
only the revision that was met last is kept, and jobs that do the same share one plan: what is kept
for each of very many jobs is its id and a reference. Where each has a definition of its own, or
each ad-hoc run says something else about itself, the bytes that this takes are what is bounded.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, TenantId
from betimes.domain.kept import Kept
from betimes.domain.outcome import ErrorFacts, Failed
from betimes.domain.spec import RunSpec, spec_from_json
from betimes.engine.resolve import Assignment, Home
from betimes.store.parcels import WantedRun
from betimes.store.specs import SpecKey, Specs, weight_of
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler, Handlers, Kind

KNOWN_BYTES_MAX = 64 << 20
"""Most bytes of plans of jobs: so many as 400,000 jobs take that share their definitions."""
KNOWN_BYTES = 150
"""What a job takes whose plan is there already."""
AD_HOC_BYTES_MAX = 8 << 20
"""Most bytes of plans of ad-hoc runs."""
PARTS = 8
"""When there are too many, one part of so many is forgotten, whatever its age: jobs fire in turns,
and to forget the oldest would be to forget always the one that is needed next."""
GONE = RunSpec(handler=None, payload=None)
UNHANDLED = object()
"""What comes of a run whose handler this worker does not have: nothing was tried."""


Fetch = Callable[[TenantId, str], Awaitable[bytes]]
"""What a reference of a tenant stands for; raises `NotFound` when there is nothing any more."""
Way = Callable[[Handler], Call]
"""How handlers of one kind are called: a coroutine function of the context for each."""


class AdHocKey(NamedTuple):
    """What ad-hoc runs that are executed alike have in common."""

    handler: str | None
    options: str | None


Pair = tuple[JobId | AdHocKey, int | None]
"""What a run is an occurrence of, and in which revision."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition together with the means to execute it."""

    spec: RunSpec
    handler: str | None
    call: Call
    start_deadline: timedelta | None
    plain: bool
    """Whether a success has no consequences beyond the run itself."""
    needs: str | None = None
    """What a worker must have to do it."""

    def given(self, run: WantedRun, home: Home) -> Assignment:
        """A run of this definition, for the rules about its end."""
        return Assignment(run, home, self.spec, self.handler, self.needs)

    @property
    def unable(self) -> bool:
        """Whether this worker does not have the handler."""
        return self.call is _unhandled


class _Known(NamedTuple):
    """The plan of a job, and of which revision it is; ad-hoc runs have none."""

    revision: int | None
    plan: Plan


class Plans:
    """Plans by definition."""

    def __init__(
        self,
        *,
        specs: Specs,
        handlers: Handlers,
        ways: Mapping[Kind, Way],
        fetch: Fetch | None = None,
    ) -> None:
        self._specs = specs
        self._handlers = handlers
        self._needs = frozenset(handlers.needs())
        self._ways = ways
        self._fetch = fetch
        self._known: dict[JobId, _Known] = {}
        self._ad_hoc: Kept[AdHocKey, _Known] = Kept(AD_HOC_BYTES_MAX)
        self._made: dict[int, tuple[Plan, int]] = {}
        """Every plan of a known job, with what it weighs."""
        self._bytes = 0
        self._forgotten = 0

    @property
    def weight(self) -> int:
        """About how many bytes are kept."""
        return self._bytes + self._ad_hoc.weight

    async def of(self, runs: Sequence[WantedRun]) -> list[Plan]:
        """A plan for each run, in order; reads the definitions that are not known yet."""
        keys = list(_keys(runs))
        known = [self._find(key) for key, _ in keys]
        missing = {
            pair
            for pair, one in zip(keys, known, strict=True)
            if one is None or one.revision != pair[1]
        }
        if not missing:
            return [one.plan for one in known if one is not None]
        # What was found stays in hand while we wait: meanwhile it may be forgotten.
        learned = await self._learn(missing)
        return [
            one.plan if one is not None and one.revision == pair[1] else learned[pair].plan
            for pair, one in zip(keys, known, strict=True)
        ]

    def _find(self, key: JobId | AdHocKey) -> _Known | None:
        return self._ad_hoc.get(key) if isinstance(key, AdHocKey) else self._known.get(key)

    async def _learn(self, pairs: set[Pair]) -> dict[Pair, _Known]:
        jobs = {pair: found for pair in pairs if (found := _spec_key(pair)) is not None}
        specs = await self._specs.read(jobs.values()) if jobs else {}
        learned: dict[Pair, _Known] = {}
        for pair in pairs:
            key, revision = pair
            if isinstance(key, AdHocKey):
                one = _Known(None, self._plan(_ad_hoc(key)))
                learned[pair] = self._ad_hoc.put(key, one, weight_of(None, key.options, None))
                continue
            spec = specs.get(jobs[pair], GONE)
            if key not in self._known:
                self._bytes += KNOWN_BYTES
            learned[pair] = self._known[key] = _Known(revision, self._made_of(spec))
        while self._bytes > KNOWN_BYTES_MAX and self._known:
            self._forget()
        return learned

    def _made_of(self, spec: RunSpec) -> Plan:
        """The store gives the same object for the same definition, and so do we."""
        made = self._made.get(id(spec))
        if made is not None and made[0].spec is spec:
            return made[0]
        plan, weight = self._plan(spec), _weight_of(spec)
        self._made[id(spec)] = plan, weight
        self._bytes += weight
        return plan

    def _forget(self) -> None:
        """Plans in use stay reachable through the runs that hold them."""
        self._forgotten = (self._forgotten + 1) % PARTS
        self._known = {
            key: one for key, one in self._known.items() if hash(key) % PARTS != self._forgotten
        }
        used = {id(one.plan.spec) for one in self._known.values()}
        self._made = {key: one for key, one in self._made.items() if key in used}
        self._bytes = KNOWN_BYTES * len(self._known)
        self._bytes += sum(weight for _, weight in self._made.values())

    def _plan(self, spec: RunSpec) -> Plan:
        name = spec.handler or spec.target.get("type")
        handler = None if name is None else self._handlers.get(name)
        call = _unhandled if handler is None else self._ways[handler.kind](handler)
        if handler is not None and self._fetch is not None and spec.options.get("payload_ref"):
            call = fetching(self._fetch, str(spec.options["payload_ref"]), call)
        needs = spec.needs
        if handler is None and needs in self._needs:
            needs = None  # a name that only looks like one of ours: nobody is the right one
        return Plan(
            spec=spec,
            needs=needs,
            handler=name,
            call=call,
            start_deadline=spec.start_deadline,
            plain=spec.is_plain,
        )


def fetching(fetch: Fetch, reference: str, call: Call) -> Call:
    """The same, with the payload that a reference stands for; each run's own payload wins."""

    async def fetched(context: Context) -> object:
        if context.has_own_payload:
            return await call(context)
        try:
            context.given(await fetch(context.tenant, reference))
        except NotFound as missing:
            return Failed(ErrorFacts("PayloadMissing", missing.sentence), retryable=False)
        return await call(context)

    return fetched


def on_the_loop(handler: Handler) -> Call:
    """How handlers on the event loop are called: as they are."""
    return handler.function


def _keys(runs: Sequence[WantedRun]) -> Iterator[Pair]:
    """The definition of each run; in a row of like runs it is the same object."""
    last = AdHocKey(None, None)
    for run in runs:
        if run.job is not None and run.revision is not None:
            yield run.job, run.revision
            continue
        if run.handler != last.handler or run.options != last.options:
            last = AdHocKey(run.handler, run.options)
        yield last, None


def _spec_key(pair: Pair) -> SpecKey | None:
    key, revision = pair
    return None if isinstance(key, AdHocKey) or revision is None else SpecKey(key, revision)


def _weight_of(spec: RunSpec) -> int:
    return weight_of(str(spec.target), str(spec.options), spec.payload)


def _ad_hoc(key: AdHocKey) -> RunSpec:
    options = json.loads(key.options) if key.options else {}
    return spec_from_json(
        handler=key.handler, payload=None, target=options.get("target"), options=options
    )


async def _unhandled(_: Context) -> object:
    return UNHANDLED
