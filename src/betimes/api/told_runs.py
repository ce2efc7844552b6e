"""What is told about runs that were enqueued, or recognised by their dedupe keys."""

from collections.abc import Sequence
from datetime import datetime

from betimes.api.acting import answer
from betimes.api.routes.jobs_control import QUEUED, SCHEDULED, told_run
from betimes.api.run_shapes import shown_run
from betimes.domain.ids import shard_of, to_text
from betimes.domain.run import NewRun
from betimes.ops.acting import Told
from betimes.ops.dedupe import MadeRun
from betimes.ops.making import Enqueued
from betimes.wire import runs as wire
from betimes.wire.jobs import BatchItem


def told_enqueued(enqueued: Enqueued, new: NewRun, now: datetime) -> Told:
    """A run that was made, or the one that has its dedupe key."""
    made, view = enqueued
    if view is None:
        return told_run(made.id, replaced=made.replaced, later=is_later(new, now))
    shown = shown_run(view)
    shown.deduplicated = True
    return Told(
        answer=answer(200, shown, headers={"Location": f"/v1/runs/{shown.id}"}),
        resource=shown.id,
        shard=shard_of(made.id),
        changed=False,
    )


def is_later(new: NewRun, now: datetime) -> bool:
    """Whether a run waits for its time first. What asks for none is due by the database's clock."""
    if new.due_at is None and new.delay is None:
        return False
    return new.due(now) > now


def told_runs(
    runs: list[MadeRun],
    new: Sequence[NewRun],
    refused: dict[int, BatchItem] | None,
    now: datetime,
) -> Told:
    """Many of them, in the order given; with those that were refused, if each stands alone."""
    made = [
        wire.RunMade(
            id=to_text("run", one.id),
            state=SCHEDULED if is_later(wanted, now) else QUEUED,
            deduplicated=one.deduplicated,
            replaced=None if one.replaced is None else to_text("run", one.replaced),
        )
        for one, wanted in zip(runs, new, strict=True)
    ]
    reply = answer(202, wire.RunsMade(items=made))
    if refused is not None:
        left = iter(made)
        items = [
            refused.get(place) or _told_one(next(left)) for place in range(len(made) + len(refused))
        ]
        reply = answer(207, wire.RunsTold(items=items))
    return Told(
        answer=reply,
        resource=f"runs:{len(runs)}",
        shard=shard_of(runs[0].id),
        after={"count": len(runs), "first": made[0].id},
        event="run.queued",
        details={"count": len(runs), "first": made[0].id},
    )


def _told_one(made: wire.RunMade) -> BatchItem:
    """One of those that stood for themselves; a known one is not made again."""
    return BatchItem(status=200 if made.deduplicated else 202, id=made.id)
