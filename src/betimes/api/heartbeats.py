"""Signs of life between use cases and the wire: every lease that is named is renewed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from betimes.api.parcels import Seals
from betimes.api.problem import Trouble
from betimes.api.shaping import maybe_span
from betimes.api.worker_limits import EXTEND_MAX
from betimes.domain.ids import Fence, RunId, WorkerId
from betimes.ops import leases, workers
from betimes.ops.desk import Desk
from betimes.wire import workers as wire
from betimes.wire.base import shown_instant


class _Named(NamedTuple):
    """What a heartbeat names: a lease, and which runs of it are under way."""

    text: str
    lease: workers.ParcelLease
    runs: Sequence[UUID]
    alone: bool
    """Whether it is the lease of a single run."""


async def heartbeat(
    desk: Desk,
    worker: WorkerId,
    told: wire.Heartbeat,
    seals: Seals,
    *,
    ttl: timedelta,
    now: datetime,
) -> wire.HeartbeatAnswer:
    """Renew every lease that is named; what was lost, and which runs are to end."""
    named: list[_Named] = []
    lost: list[str] = []
    spans: dict[workers.ParcelLease, timedelta] = {}
    notes: dict[leases.HeldLease, leases.Note] = {}

    def name(
        text: str, lease: workers.ParcelLease, by: Any, runs: Sequence[UUID], where: str
    ) -> None:
        span = min(maybe_span(by, pointer=f"{where}/by") or ttl, EXTEND_MAX)
        # Of several runs in one parcel the one that wants it longest decides.
        spans[lease] = max(spans.get(lease, span), span)
        named.append(_Named(text, lease, runs, where.startswith("/running")))

    for place, one in enumerate(told.running):
        try:
            held = seals.run(one.lease_id)
        except Trouble:
            lost.append(one.lease_id)
            continue
        name(one.lease_id, held.held, one.by, [held.run], f"/running/{place}")
        if one.progress is not None:
            notes[held] = leases.Note(one.progress.percent, one.progress.message, None)
    for place, parcel in enumerate(told.parcels):
        try:
            lease = seals.parcel(parcel.lease_id)
        except Trouble:
            lost.append(parcel.lease_id)
            continue
        name(parcel.lease_id, lease, parcel.by, parcel.runs, f"/parcels/{place}")
    said = {"rss": told.rss, "cpu": told.cpu}
    answer = await workers.beat(
        desk,
        seals.tenant,
        worker,
        spans,
        draining=told.state == "draining",
        running=_running(named),
        bound=seals.queues,
        facts={name: value for name, value in said.items() if value is not None},
        notes=notes,
        busy=told.busy,
    )
    return _answer(named, lost, answer, now)


def _running(named: Sequence[_Named]) -> dict[RunId, Fence]:
    return {RunId(run): one.lease.fence for one in named for run in one.runs}


def _answer(
    named: Sequence[_Named], lost: list[str], beat: workers.Beat, now: datetime
) -> wire.HeartbeatAnswer:
    commands: list[wire.Command] = []
    extended: list[wire.Extended] = []
    for one in named:
        until = beat.extended.get((one.lease.parcel, one.lease.fence))
        if until is None:
            lost.append(one.text)
            continue
        extended.append(wire.Extended(lease_id=one.text, expires_at=shown_instant(until)))
        commands += [
            wire.Command(type="cancel", lease_id=one.text, run=None if one.alone else run)
            for run in one.runs
            if run in beat.unwanted
        ]
    if beat.draining:
        commands.append(wire.Command(type="drain"))
    return wire.HeartbeatAnswer(
        commands=commands, extended=extended, lost=lost, server_time=shown_instant(now)
    )
