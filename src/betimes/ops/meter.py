"""The use of quotas as one node knows it: asked before anything is written, and cheap to ask.

    jobs, active_runs, backlog       counted in the database, believed for a second or, where much
                                     is stored, for a second per 20,000; what this node admits
                                     meanwhile is added. So a limit is overshot by no more than
                                     what other nodes admit in that time.
    creates_per_second,              token buckets in the memory of the node: n nodes allow up to
    runs_per_minute,                 n times the rate. Exact on one node; a batch larger than the
    payload_bytes_per_minute         bucket is admitted when it is full, and paid back.
    payload_bytes                    of one payload; exact.

A tenant without a quota costs nothing here. One that has used most of a counted quota, or that was
refused, is told so by an event, at most once an hour.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from betimes.domain.event import EXCEEDED, WARNING
from betimes.domain.ids import TenantId
from betimes.fairness.bucket import Bucket, Rate
from betimes.ops.desk import Desk
from betimes.ops.quotas import TOLD_EVERY, QuotaReached, soft_limit, tell_use
from betimes.store.listing import count_jobs, count_work
from betimes.store.pool import Connection
from betimes.store.telling import QuotaNews

ENTRIES_MAX = 100_000
BELIEVED_SECONDS = 1.0
COUNTED_PER_SECOND = 20_000
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RATES = {
    "creates_per_second": SECOND,
    "runs_per_minute": MINUTE,
    "payload_bytes_per_minute": MINUTE,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What somebody is about to create."""

    jobs: int = 0
    runs: int = 0
    payload_bytes: int = 0
    largest_payload: int = 0

    @classmethod
    def of(
        cls, *, jobs: Iterable[bytes | None] = (), runs: Iterable[bytes | None] = ()
    ) -> "Demand":
        """So many jobs and runs, given by their payloads."""
        of_jobs = [len(payload or b"") for payload in jobs]
        of_runs = [len(payload or b"") for payload in runs]
        sizes = of_jobs + of_runs
        return cls(
            jobs=len(of_jobs),
            runs=len(of_runs),
            payload_bytes=sum(sizes),
            largest_payload=max(sizes, default=0),
        )

    def counted(self) -> dict[str, int]:
        """By the quotas that bound what there is."""
        return {"jobs": self.jobs, "active_runs": self.runs, "backlog": self.runs}

    def flowing(self) -> dict[str, int]:
        """By the quotas that bound how fast it comes."""
        return {
            "creates_per_second": self.jobs + self.runs,
            "runs_per_minute": self.runs,
            "payload_bytes_per_minute": self.payload_bytes,
        }


class Flow(NamedTuple):
    """How much of a rate is used, and when it is whole again."""

    used: int
    resets_at: datetime


@dataclass(slots=True)
class Count:
    """What was counted, when, and what was added to it since."""

    used: int
    at: float

    def is_fresh(self, now: float) -> bool:
        """Counting costs by the row, so a large count is believed for longer."""
        return now - self.at < max(BELIEVED_SECONDS, self.used / COUNTED_PER_SECOND)


class Meter:
    """Admits what is within the quotas of its tenant, all of it or nothing."""

    def __init__(self) -> None:
        self._counts: dict[tuple[TenantId, str], Count] = {}
        self._buckets: dict[tuple[TenantId, str], Bucket] = {}
        self._told: dict[tuple[TenantId, str, str], float] = {}

    async def admit(
        self, desk: Desk, tenant: TenantId, quotas: Mapping[str, int], demand: Demand
    ) -> None:
        """Refuse what exceeds a quota, before anything is written.

        Raises:
            QuotaReached: with the quota, its limit, what is used and when that changes by itself.

        """
        largest = quotas.get("payload_bytes")
        if largest is not None and demand.largest_payload > largest:
            # One payload is too large: of what is in use it says nothing.
            raise QuotaReached(
                "payload_bytes",
                largest,
                demand.largest_payload,
                sentence=f"the quota payload_bytes allows payloads of at most {largest} bytes, "
                f"got one of {demand.largest_payload}",
            )
        try:
            uses = await self._admit(desk, tenant, quotas, demand)
        except QuotaReached as full:
            news = QuotaNews(type=EXCEEDED, quota=full.quota, limit=full.limit, used=full.used)
            await self._tell(desk, tenant, news)
            raise
        for name, used in uses.items():
            if used >= soft_limit(quotas[name]):
                news = QuotaNews(type=WARNING, quota=name, limit=quotas[name], used=used)
                await self._tell(desk, tenant, news)

    async def _admit(
        self, desk: Desk, tenant: TenantId, quotas: Mapping[str, int], demand: Demand
    ) -> dict[str, int]:
        """What is used then of the quotas that bound what there is."""
        wanted = {name: more for name, more in demand.counted().items() if more and name in quotas}
        for name, more in wanted.items():
            used = await self._used(desk, tenant, name, limit=quotas[name])
            if used + more > quotas[name]:
                raise QuotaReached(name, quotas[name], used)
        self._take(desk, tenant, quotas, demand)
        for name, more in wanted.items():
            self._counts[tenant, name].used += more
        return {name: self._counts[tenant, name].used for name in wanted}

    async def _tell(self, desk: Desk, tenant: TenantId, news: QuotaNews) -> None:
        """Once an hour; the database knows what other nodes have told."""
        key, now = (tenant, news.quota, news.type), desk.clock.monotonic()
        if now - self._told.get(key, -math.inf) < TOLD_EVERY.total_seconds():
            return
        if len(self._told) >= ENTRIES_MAX:
            self._told.clear()
        self._told[key] = now
        await tell_use(desk, tenant, news)

    def flow(self, desk: Desk, tenant: TenantId, quotas: Mapping[str, int]) -> dict[str, Flow]:
        """What is used of the rates of a tenant here, and when none of it will be."""
        at = EPOCH + timedelta(seconds=desk.clock.monotonic())
        found: dict[str, Flow] = {}
        for name, period in RATES.items():
            if limit := quotas.get(name):
                rate = Rate(limit, period, burst=limit)
                bucket = self._buckets.get((tenant, name), Bucket.full(rate, at))
                used = limit - bucket.refilled(rate, at).tokens
                wait = timedelta(seconds=used / rate.per_second)
                found[name] = Flow(round(used), desk.clock.now() + wait)
        return found

    async def _used(self, desk: Desk, tenant: TenantId, name: str, *, limit: int) -> int:
        now = desk.clock.monotonic()
        known = self._counts.get((tenant, name))
        if known is None or not known.is_fresh(now):
            if len(self._counts) >= ENTRIES_MAX:
                self._counts.clear()
            for found, used in (await _count(desk, tenant, name, limit)).items():
                self._counts[tenant, found] = Count(used, now)
        return self._counts[tenant, name].used

    def _take(
        self, desk: Desk, tenant: TenantId, quotas: Mapping[str, int], demand: Demand
    ) -> None:
        """Tokens of every rate, or of none. The buckets live by the monotonic clock."""
        at = EPOCH + timedelta(seconds=desk.clock.monotonic())
        taken: dict[str, Bucket] = {}
        for name, cost in demand.flowing().items():
            limit = quotas.get(name)
            if limit is None or not cost:
                continue
            if limit == 0:
                raise QuotaReached(name, 0, 0)
            rate = Rate(limit, RATES[name], burst=limit)
            bucket = self._buckets.get((tenant, name), Bucket.full(rate, at)).refilled(rate, at)
            needed = min(cost, limit)
            if bucket.tokens < needed:
                wait = timedelta(seconds=(needed - bucket.tokens) / rate.per_second)
                used = round(limit - bucket.tokens)
                raise QuotaReached(name, limit, used, resets_at=desk.clock.now() + wait, wait=wait)
            # More than the bucket holds is a debt, so that large batches come at the rate as well.
            taken[name] = Bucket(bucket.tokens - cost, bucket.at)
        if len(self._buckets) >= ENTRIES_MAX:
            self._buckets.clear()
        self._buckets |= {(tenant, name): bucket for name, bucket in taken.items()}


async def _count(desk: Desk, tenant: TenantId, name: str, limit: int) -> dict[str, int]:
    async def work(connection: Connection) -> dict[str, int]:
        if name == "jobs":
            return {name: await count_jobs(connection, tenant, most=limit + 1)}
        waiting, leased = await count_work(connection, tenant)
        return {"active_runs": waiting + leased, "backlog": waiting}

    return await desk.transact(work, tenant=tenant)
