"""A definition together with the means to execute it; the same on every transport."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from betimes.domain.errors import LeaseOver, NotFound
from betimes.domain.ids import TenantId
from betimes.domain.leased import Assignment, Home, WantedRun
from betimes.domain.outcome import ErrorFacts, Failed
from betimes.domain.spec import RunSpec
from betimes.executing.threads import LEASE_OVER
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler, Handlers, Kind

UNHANDLED = object()
"""What comes of a run whose handler this worker does not have: nothing was tried."""
PAYLOAD_MISSING = "PayloadMissing"

Fetch = Callable[[TenantId, str], Awaitable[bytes]]
"""What a reference of a tenant stands for; raises `NotFound` when there is nothing any more."""
Way = Callable[[Handler], Call]
"""How handlers of one kind are called: a coroutine function of the context for each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to execute the runs of one definition."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """What a worker makes plans of definitions with."""

    handlers: Handlers
    ways: Mapping[Kind, Way]
    fetch: Fetch | None = None
    needs: Collection[str] = ()
    """What its handlers can do, as parcels name it."""

    def plan(self, spec: RunSpec, *, plain: bool) -> Plan:
        """How runs of a definition are executed here."""
        name = spec.handler or spec.target.get("type")
        handler = None if name is None else self.handlers.get(name)
        call = _unhandled if handler is None else self.ways[handler.kind](handler)
        if handler is not None and self.fetch is not None and spec.options.get("payload_ref"):
            call = fetching(self.fetch, str(spec.options["payload_ref"]), call)
        needs = spec.needs
        if handler is None and needs in self.needs:
            needs = None  # a name that only looks like one of ours: nobody is the right one
        return Plan(
            spec=spec,
            needs=needs,
            handler=name,
            call=call,
            start_deadline=spec.start_deadline,
            plain=plain,
        )


def fetching(fetch: Fetch, reference: str, call: Call) -> Call:
    """The same, with the payload that a reference stands for; each run's own payload wins."""

    async def fetched(context: Context) -> object:
        if context.has_own_payload:
            return await call(context)
        try:
            context.given(await fetch(context.tenant, reference))
        except NotFound as missing:
            return Failed(ErrorFacts(PAYLOAD_MISSING, missing.sentence), retryable=False)
        if not context.is_held():
            raise LeaseOver(LEASE_OVER)
        return await call(context)

    return fetched


def on_the_loop(handler: Handler) -> Call:
    """How handlers on the event loop are called: as they are."""
    return handler.function


async def _unhandled(_: Context) -> object:
    return UNHANDLED
