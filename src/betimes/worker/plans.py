"""How to execute the runs of one definition, worked out once and kept.

A definition never changes under its (job, revision), so nothing kept here can be stale.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from betimes.domain.outcome import ErrorFacts, Failed
from betimes.domain.spec import RunSpec, spec_from_json
from betimes.store.parcels import WantedRun
from betimes.store.specs import SpecKey, Specs
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler, Handlers, Kind

PLANS_MAX = 100_000

GONE = RunSpec(handler=None, payload=None)


Way = Callable[[Handler], Call]
"""How handlers of one kind are called: a coroutine function of the context for each."""


class AdHocKey(NamedTuple):
    """What ad-hoc runs that are executed alike have in common."""

    handler: str | None
    options: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition together with the means to execute it."""

    spec: RunSpec
    handler: str | None
    call: Call
    start_deadline: timedelta | None
    plain: bool
    """Whether a success has no consequences beyond the run itself."""


class Plans:
    """Plans by definition; the oldest are forgotten when there are too many."""

    def __init__(self, *, specs: Specs, handlers: Handlers, ways: Mapping[Kind, Way]) -> None:
        self._specs = specs
        self._handlers = handlers
        self._ways = ways
        self._plans: dict[SpecKey | AdHocKey, Plan] = {}

    async def of(self, runs: Sequence[WantedRun]) -> list[Plan]:
        """A plan for each run, in order; reads the definitions that are not known yet."""
        keys = list(_keys(runs))
        known = self._plans
        missing = {key for key in keys if key not in known}
        if missing:
            # Held on to while we wait: another claim may learn so much that these are forgotten.
            known = {key: known[key] for key in keys if key in known}
            known |= await self._learn(missing)
        return [known[key] for key in keys]

    async def _learn(self, keys: set[SpecKey | AdHocKey]) -> dict[SpecKey | AdHocKey, Plan]:
        jobs = [key for key in keys if isinstance(key, SpecKey)]
        specs = await self._specs.read(jobs) if jobs else {}
        learned = {
            key: self._plan(specs.get(key, GONE) if isinstance(key, SpecKey) else _ad_hoc(key))
            for key in keys
        }
        self._plans |= learned
        # Plans in use stay reachable through the runs that hold them.
        surplus = max(0, len(self._plans) - PLANS_MAX)
        for key in list(islice(self._plans, surplus)):
            del self._plans[key]
        return learned

    def _plan(self, spec: RunSpec) -> Plan:
        name = spec.handler or spec.target.get("type")
        handler = None if name is None else self._handlers.get(name)
        return Plan(
            spec=spec,
            handler=name,
            call=_missing(name) if handler is None else self._ways[handler.kind](handler),
            start_deadline=spec.start_deadline,
            plain=spec.fixed_delay is None,
        )


def on_the_loop(handler: Handler) -> Call:
    """How handlers on the event loop are called: as they are."""
    return handler.function


def _keys(runs: Sequence[WantedRun]) -> Iterator[SpecKey | AdHocKey]:
    """The definition of each run; in a row of like runs it is the same object."""
    last = AdHocKey(None, None)
    for run in runs:
        if run.job is not None and run.revision is not None:
            yield SpecKey(run.job, run.revision)
            continue
        if run.handler != last.handler or run.options != last.options:
            last = AdHocKey(run.handler, run.options)
        yield last


def _ad_hoc(key: AdHocKey) -> RunSpec:
    options = json.loads(key.options) if key.options else {}
    return spec_from_json(
        handler=key.handler, payload=None, target=options.get("target"), options=options
    )


def _missing(name: str | None) -> Call:
    async def call(_: Context) -> Failed:
        # Another worker may have it, or a later release of this one: worth a retry.
        return Failed(ErrorFacts("HandlerMissing", f"this worker has no handler {name!r}"))

    return call
