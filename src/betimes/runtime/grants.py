"""What a worker is granted over HTTP, as the runner knows it."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from betimes.domain.ids import Fence, JobId, ParcelId, RunId, ShardId, TenantId
from betimes.domain.kept import Kept
from betimes.domain.leased import LeasedParcel, WantedRun
from betimes.domain.retry import RetryPolicy
from betimes.domain.spec import RunSpec
from betimes.domain.states import Trigger
from betimes.runtime.line import NOTHING, Definition, Grant, GrantedRun
from betimes.runtime.reporter import HttpParcel
from betimes.schedule.duration import read_duration
from betimes.worker.execute import Work
from betimes.worker.plan import Plan, Planning

PLANS_BYTES_MAX = 8 << 20
PLAN_BYTES = 1_500
NOBODY = TenantId(UUID(int=0))
"""Whose runs they are is known to the service."""


class Plans:
    """Plans by definition, as it was told; each is read once, and the bytes are bounded."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning
        self._kept: Kept[bytes, Plan] = Kept(PLANS_BYTES_MAX)

    def of(self, told: msgspec.Raw) -> Plan:
        """How runs of a definition are executed."""
        text = bytes(told)
        found = self._kept.get(text)
        if found is None:
            spec = spec_of(msgspec.json.decode(text, type=Definition))
            # What follows from a success is decided where it is written.
            plan = self._planning.plan(spec, plain=True)
            found = self._kept.put(text, plan, PLAN_BYTES + 4 * len(text))
        return found


def spec_of(told: Definition) -> RunSpec:
    """A definition as the runner knows it."""
    timeout = None
    if told.timeout is not None:
        timeout = timedelta(microseconds=read_duration(told.timeout).elapsed())
    said = {
        "payload_ref": told.payload_path or told.payload_ref,
        "tracestate": told.tracestate,
        "tags": told.tags,
    }
    return RunSpec(
        handler=told.handler,
        payload=_content(told.payload),
        retry=RetryPolicy(max_attempts=told.max_attempts),
        timeout=timeout,
        options={name: value for name, value in said.items() if value},
    )


def _content(raw: msgspec.Raw) -> bytes | None:
    content = bytes(raw)
    return None if content == b"null" else content


def held_of(grant: Grant, *, since: float, trusted_until: float) -> HttpParcel:
    """A parcel that was granted; its name here is that of its first run."""
    runs = [RunId(run.id) for run in grant.runs]
    leased = LeasedParcel(
        shard=ShardId(0),
        id=ParcelId(runs[0]),
        tenant=NOBODY,
        queue=grant.queue,
        priority=grant.priority,
        fence=Fence(grant.fence),
        deliveries=1,
        runs=runs,
    )
    held = HttpParcel(leased, grant, since=since, trusted_until=trusted_until)
    for run in grant.runs:
        if run.checkpoint is not NOTHING and (kept := _content(run.checkpoint)) is not None:
            held.checkpoints[RunId(run.id)] = kept
    return held


def work_of(grants: Sequence[Grant], parcels: Sequence[HttpParcel], plans: Sequence[Plan]) -> Work:
    """Every run with its parcel and its plan."""
    for grant, parcel in zip(grants, parcels, strict=True):
        before = grant.attempt - 1
        for run in grant.runs:
            yield _wanted(run, before, parcel), parcel, plans[run.definition]


def _wanted(run: GrantedRun, before: int, parcel: HttpParcel) -> WantedRun:
    identity = RunId(run.id)
    # What has a checkpoint has begun before, whatever was counted of it.
    begun = run.due_at if identity in parcel.checkpoints else None
    job = None if run.job is None else JobId(run.job)
    payload = None if run.payload is NOTHING else _content(run.payload)
    return WantedRun(
        id=identity,
        job=job,
        revision=None,
        due_at=run.due_at,
        fire_at=run.scheduled_for,
        first_started_at=begun,
        cancel_at=None,
        attempt=before,
        trigger=Trigger.SCHEDULE,
        handler=None,
        payload=payload,
        options=None,
    )
