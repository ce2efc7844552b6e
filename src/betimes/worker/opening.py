"""Payloads that are sealed in their rows, opened before they are handed to anybody."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from betimes.domain.errors import Locked
from betimes.domain.leased import LeasedParcel, WantedRun
from betimes.domain.outcome import ErrorFacts, Failed
from betimes.ops.contents import Contents, Keys, is_sealed
from betimes.worker.context import Context
from betimes.worker.plan import Plan

Found = tuple[WantedRun, Plan]


def any_sealed(runs: Sequence[WantedRun], plans: Sequence[Plan]) -> bool:
    """Whether there is anything to open; most often there is not."""
    return any(is_sealed(run.payload) for run in runs) or any(
        is_sealed(plan.spec.payload) for plan in plans
    )


async def opened(
    contents: Contents, leased: Sequence[LeasedParcel], found: Sequence[Found]
) -> list[Found]:
    """Runs with their payloads, or those of their jobs, as they were given."""
    tenants = {run: parcel.tenant for parcel in leased for run in parcel.runs}
    told: list[Found] = []
    for run, plan in found:
        payload = plan.spec.payload if run.payload is None else run.payload
        if is_sealed(payload):
            told.append(_open(await contents.keys(tenants[run.id]), run, plan, payload))
        else:
            told.append((run, plan))
    return told


def _open(keys: Keys | None, run: WantedRun, plan: Plan, payload: bytes | None) -> Found:
    with suppress(Locked):
        if keys is not None:
            return run._replace(payload=keys.open(payload)), plan
    # Somebody with the keys may have it next; nobody is handed something unreadable.
    return run, replace(plan, call=_locked, plain=False)


async def _locked(_: Context) -> object:
    facts = ErrorFacts("PayloadLocked", "its payload is sealed, and this node has no key for it")
    return Failed(facts)
