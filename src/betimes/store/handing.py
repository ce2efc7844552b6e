"""What is told when runs are handed to a worker: that they start.

Only to tenants that asked for every event, because a row per start costs as much as the start.
"""

from collections.abc import Iterable
from typing import NamedTuple

from betimes.domain.ids import to_text
from betimes.domain.leased import LeasedParcel, WantedRun
from betimes.store.rules import Rules
from betimes.store.telling import News, job_text


class Handed(NamedTuple):
    """A run and the parcel it came in, as it is about to start."""

    run: WantedRun
    parcel: LeasedParcel
    handler: str | None
    attempt: int


def news_of(handed: Iterable[Handed], rules: Rules) -> list[News]:
    """What is worth telling about runs that start now; those that are cancelled do not start."""
    return [
        _started(one) for one in handed if one.run.cancel_at is None and is_news(one.parcel, rules)
    ]


def is_news(parcel: LeasedParcel, rules: Rules) -> bool:
    """Whether the starts of its runs are to be told; cheap, because nearly always they are not."""
    return rules.tenant(parcel.tenant).told_all


def _started(one: Handed) -> News:
    run = to_text("run", one.run.id)
    body = {
        "run_id": run,
        "job_id": job_text(one.run.job),
        "state": "running",
        "queue": one.parcel.queue,
        "handler": one.handler,
        "attempt": one.attempt,
        "reason": None,
        "next_retry_at": None,
    }
    return News(one.parcel.shard, one.parcel.tenant, "run.started", run, body)
