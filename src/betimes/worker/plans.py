"""How to execute the runs of one definition, worked out once and kept.

A definition never changes under its (job, revision), so nothing kept here can be stale. Of a job
only the revision that was met last is kept, and jobs that do the same share one plan: what is kept
for each of very many jobs is its id and a reference. Where each has a definition of its own, or
each ad-hoc run says something else about itself, the bytes that this takes are what is bounded.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from betimes.domain.ids import JobId
from betimes.domain.kept import Kept
from betimes.domain.leased import WantedRun
from betimes.domain.spec import RunSpec
from betimes.store.specs import SpecKey, Specs, ad_hoc_spec, weight_of
from betimes.worker.plan import Plan, Planning

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


class AdHocKey(NamedTuple):
    """What ad-hoc runs that are executed alike have in common."""

    handler: str | None
    options: str | None


Pair = tuple[JobId | AdHocKey, int | None]
"""What a run is an occurrence of, and in which revision."""


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
        planning: Planning,
    ) -> None:
        self._specs = specs
        self._planning = planning
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
                one = _Known(None, self._planned(ad_hoc_spec(key.handler, key.options)))
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
        plan, weight = self._planned(spec), _weight_of(spec)
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

    def _planned(self, spec: RunSpec) -> Plan:
        return self._planning.plan(spec, plain=spec.is_plain)


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
