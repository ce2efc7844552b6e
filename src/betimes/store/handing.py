"""What is told when runs are handed to a worker: that they start, and that they start late.

A start is told only to tenants that asked for every event, because a row per start costs as much as
the start. A late start is told to everybody, once for each parcel: it is rare, or everything is.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from betimes.domain.ids import RunId, to_text
from betimes.domain.parcel import Lane
from betimes.store.lease import LeasedParcel
from betimes.store.parcels import WantedRun
from betimes.store.rules import Rules
from betimes.store.telling import News, job_text

LATE_AFTER = timedelta(minutes=1)
FIRST = 1


class Handed(NamedTuple):
    """A run and the parcel it came in, as it is about to start."""

    run: WantedRun
    parcel: LeasedParcel
    handler: str | None
    attempt: int


def news_of(handed: Iterable[Handed], rules: Rules, *, now: datetime) -> list[News]:
    """What is worth telling about runs that start now."""
    found: list[News] = []
    seen: dict[object, News] = {}
    for one in handed:
        if one.run.cancel_at is not None:
            continue  # it ends without having started
        if is_late(one.parcel, now):
            if (known := seen.get(one.parcel.id)) is None:
                known = seen[one.parcel.id] = _late(one, now)
                found.append(known)
            known.body["runs"] += 1
        if rules.tenant(one.parcel.tenant).told_all:
            found.append(_news("run.started", one))
    return found


def is_late(parcel: LeasedParcel, now: datetime) -> bool:
    """Whether it waited for its first worker for long; what is caught up with is late anyway."""
    first = parcel.lane is Lane.ON_TIME and parcel.fence == FIRST
    return first and now - parcel.visible_at > LATE_AFTER


def is_news(parcel: LeasedParcel, rules: Rules, now: datetime) -> bool:
    """Whether anything about its runs is to be told; cheap, because nearly always it is not."""
    return rules.tenant(parcel.tenant).told_all or is_late(parcel, now)


def _late(one: Handed, now: datetime) -> News:
    news = _news("run.late", one)
    lag = now - one.parcel.visible_at
    news.body.update(runs=0, lag_ms=round(lag / timedelta(milliseconds=1)))
    return news


def _news(kind: str, one: Handed) -> News:
    run = to_text("run", RunId(one.run.id))
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
    return News(one.parcel.shard, one.parcel.tenant, kind, run, body)
