"""Gaps become late runs and decisions: the planner's side of catching up.

What is authoritative: the row of a gap. It goes in the transaction that inserts the late runs,
their parcels and the decisions, under the shard's epoch, so every missed fire is settled once.

An episode is one time a tenant had to catch up. Its row is locked by whoever adds to it: that is
what makes the turns of late runs one sequence for the whole cluster, and what makes the number that
goes without approval exact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from json import loads
from uuid import UUID

from betimes.domain.ids import JobId, NodeId, RunId, ShardId, TenantId
from betimes.domain.job import overlap_of
from betimes.domain.kept import kept_by_text
from betimes.domain.parcel import PACE_QUANTUM_MS, RUNS_MAX, Parcel, Waiting, pack
from betimes.domain.parcel import Lane as ParcelLane
from betimes.domain.states import Trigger
from betimes.fairness.overlap import OverlapPolicy, policy_of
from betimes.schedule import Accounted
from betimes.store.ask import many
from betimes.store.database import Database
from betimes.store.jobs import hold_jobs
from betimes.store.joining import Episode, Pace, join, shard_of_tenant
from betimes.store.occurrences import Occurrence, accounted_for, insert_planned
from betimes.store.plan import (
    DroppedFires,
    DueJob,
    Step,
    completed_of,
    record_dropped,
    split_near,
)
from betimes.store.pool import Connection, Lane
from betimes.store.publish import parcel_columns
from betimes.store.queries import load
from betimes.store.shards import SQL as SHARDS
from betimes.store.shards import Claim, hold
from betimes.store.telling import tell_completed

SQL = load("catchup")
CATCH_UP = ParcelLane.CATCH_UP
JOB_CANCELLED, JOB_DELETED = "JOB_CANCELLED", "JOB_DELETED"
POLICIES_BYTES_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class Gap:
    """Missed fires of a job as it was then, from `job.next_fire_at` through `until_at`."""

    job: DueJob
    until_at: datetime
    completes: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """What is to become of a gap: its late runs as columns, and what is dropped."""

    gap: Gap
    ids: Sequence[RunId]
    fires: Sequence[datetime]
    dues: Sequence[datetime]
    dropped: Sequence[DroppedFires]


Reckon = Callable[[Gap, Accounted], Settled]
"""Settles what is left of a gap, some of whose fires are accounted for."""


@dataclass(slots=True)
class CaughtUp:
    """What a transaction has settled."""

    gaps: int = 0
    runs: int = 0
    held: int = 0
    parcels: list[Parcel] = field(default_factory=list)
    dropped: list[DroppedFires] = field(default_factory=list)


@dataclass(slots=True)
class Catching:
    """The planner's side of the store, for what it has missed."""

    database: Database
    node: NodeId
    shards: int | None = None

    async def shards_behind(self, shards: Sequence[ShardId]) -> list[ShardId]:
        """Which of these shards have gaps."""
        query = SQL["find_shards_behind"]
        rows = await self.database.many(query, lane=Lane.ENGINE, shards=list(shards))
        return [ShardId(row["shard"]) for row in rows]

    async def tenants_behind(self, *, now: datetime | None) -> int:
        """How many tenants share what the cluster may catch up."""
        rows = await self.database.many(SQL["count_tenants_behind"], lane=Lane.ENGINE, now=now)
        return int(rows[0]["tenants"])

    async def gaps(self, shard: ShardId, *, most: int) -> list[Gap]:
        """The oldest gaps of a shard."""
        rows = await self.database.many(SQL["read_gaps"], lane=Lane.ENGINE, shard=shard, most=most)
        return [
            Gap(DueJob(*list(row.values())[:-2]), row["until_at"], row["completes"]) for row in rows
        ]

    async def settle(
        self,
        claim: Claim,
        settled: Sequence[Settled],
        *,
        reckon: Reckon,
        pace: Pace,
        now: datetime | None,
    ) -> CaughtUp:
        """Turn gaps into late runs and decisions in one transaction under our epoch.

        A gap says from where to where fires were missed, not that all between were: a pause, a verb
        or somebody's wish may have accounted for some. They are looked for under the locks of the
        jobs, and such a gap is settled again without them.

        Safe to repeat: a gap that is gone is not settled again.

        Raises:
            FencedOut: the shard has another owner.

        """
        if self.shards is None:
            rows = await self.database.many(SHARDS["count_shards"], lane=Lane.ENGINE)
            self.shards = int(rows[0]["shards"])
        shards = self.shards

        async def work(connection: Connection) -> CaughtUp:
            at = await hold(connection, claim, node=self.node, now=now)
            batch = _Batch(connection, claim.shard, shards, at=at, pace=pace)
            return await batch.settle(settled, reckon)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


class _Batch:
    """One transaction's worth of gaps of one shard."""

    def __init__(
        self, connection: Connection, shard: ShardId, shards: int, *, at: datetime, pace: Pace
    ) -> None:
        self._connection = connection
        self._shard = shard
        self._shards = shards
        self._at = at
        self._pace = pace

    async def settle(self, settled: Sequence[Settled], reckon: Reckon) -> CaughtUp:
        await hold_jobs(self._connection, self._shard, {one.gap.job.id for one in settled})
        ours = await self._reckoned(await self._take(settled), reckon)
        alive = await self._count(ours)
        ends = await self._ends({one.gap.job.id for one in ours} - alive)
        await record_dropped(
            self._connection,
            self._shard,
            [pair for one in ours for pair in _dropped(one, ends.get(one.gap.job.id))],
            now=self._at,
        )
        late = [run for one in ours if one.gap.job.id in alive for run in occurrences_of(one)]
        inserted = await insert_planned(
            self._connection, self._shard, late, trigger=Trigger.SCHEDULE
        )
        done = CaughtUp(gaps=len(ours), runs=len(inserted))
        done.dropped += [dropped for one in ours for dropped in one.dropped]
        by_tenant: dict[TenantId, list[Occurrence]] = {}
        for run in late:
            if run.id in inserted:
                by_tenant.setdefault(run.tenant, []).append(run)
        episodes = await self._join_episodes(by_tenant)
        await self._insert(by_tenant, episodes, done)
        return done

    async def _take(self, settled: Sequence[Settled]) -> list[Settled]:
        rows = await many(
            self._connection,
            SQL["delete_gaps"],
            shard=self._shard,
            jobs=[one.gap.job.id for one in settled],
            firsts=[one.gap.job.next_fire_at for one in settled],
        )
        taken = {(row["job_id"], row["from_at"]) for row in rows}
        return [one for one in settled if (one.gap.job.id, one.gap.job.next_fire_at) in taken]

    async def _reckoned(self, settled: Sequence[Settled], reckon: Reckon) -> list[Settled]:
        """The gaps without the fires that have a run or a decision; the jobs are held."""
        gaps = [one.gap for one in settled]
        known = await accounted_for(
            self._connection,
            self._shard,
            [(gap.job.id, gap.job.next_fire_at, gap.until_at) for gap in gaps],
        )
        return [
            one if (found := known.get(_place(one.gap))) is None else reckon(one.gap, found)
            for one in settled
        ]

    async def _count(self, settled: Sequence[Settled]) -> set[JobId]:
        """Count the fires with their jobs; returns the jobs that may still run."""
        # Two gaps of one job are one row here: a row is updated once per statement.
        fires: dict[JobId, int] = {}
        completes: dict[JobId, tuple[int, bool]] = {}
        for one in settled:
            job = one.gap.job
            fires[job.id] = fires.get(job.id, 0) + len(one.ids)
            before = completes.get(job.id, (job.revision, False))
            completes[job.id] = max(before, (job.revision, one.gap.completes))
        rows = await many(
            self._connection,
            SQL["settle_jobs"],
            shard=self._shard,
            ids=list(fires),
            revisions=[completes[job][0] for job in fires],
            fires=list(fires.values()),
            completes=[completes[job][1] for job in fires],
        )
        ended = [one.gap.job for one in settled if one.gap.completes]
        await tell_completed(self._connection, self._shard, [completed_of(job) for job in ended])
        return {row["id"] for row in rows}

    async def _ends(self, jobs: set[JobId]) -> dict[JobId, str]:
        """Why nothing of these jobs may start any more."""
        if not jobs:
            return {}
        rows = await many(
            self._connection, SQL["find_jobs_left"], shard=self._shard, ids=list(jobs)
        )
        left = {row["id"] for row in rows}
        return {job: JOB_CANCELLED if job in left else JOB_DELETED for job in jobs}

    async def _join_episodes(
        self, by_tenant: Mapping[TenantId, Sequence[Occurrence]]
    ) -> dict[TenantId, "Episode"]:
        """Lock what the tenants have open, in the order that everybody locks them in."""
        rows = await many(self._connection, SQL["read_catchup_quotas"], tenants=list(by_tenant))
        quotas = {row["id"]: dict(row) for row in rows}
        episodes: dict[TenantId, Episode] = {}
        for tenant in sorted(by_tenant):
            quota = quotas.get(tenant, {})
            pace = Pace(
                per_second=quota.get("per_second") or self._pace.per_second,
                unapproved=_first(quota.get("unapproved"), self._pace.unapproved),
            )
            fires = [run.fire_at for run in by_tenant[tenant] if run.fire_at is not None]
            shard = shard_of_tenant(self._shards, tenant)
            episodes[tenant] = await join(
                self._connection, shard, tenant, fires, pace=pace, at=self._at
            )
        return episodes

    async def _insert(
        self,
        by_tenant: Mapping[TenantId, Sequence[Occurrence]],
        episodes: Mapping[TenantId, "Episode"],
        done: CaughtUp,
    ) -> None:
        parcels: list[Parcel] = []
        owners: list[UUID | None] = []
        for tenant, late in by_tenant.items():
            oldest_first = sorted(late, key=lambda run: run.due_at)
            episode = episodes[tenant]
            free, held = episode.admit(oldest_first)
            # What waits is released parcel by parcel, so none may be more than a moment's worth.
            moment = int(episode.pace.per_second * PACE_QUANTUM_MS / 1_000)
            open_parcels = self._pack(free)
            held_parcels = self._pack(held, most=min(max(1, moment), RUNS_MAX))
            parcels += [*open_parcels, *held_parcels]
            owners += [None] * len(open_parcels) + [episode.id] * len(held_parcels)
            done.held += len(held)
            await episode.extend(self._connection, late, held=len(held), at=self._at)
            done.parcels += open_parcels
        await self._insert_parcels(parcels, owners)

    def _pack(self, late: Sequence[Waiting], *, most: int = RUNS_MAX) -> list[Parcel]:
        """`due_at` of what waits is its turn, or, without one, now."""
        return pack(self._shard, late, lane=CATCH_UP, quantum_ms=PACE_QUANTUM_MS, most=most)

    async def _insert_parcels(
        self, parcels: Sequence[Parcel], owners: Sequence[UUID | None]
    ) -> None:
        if parcels:
            columns = parcel_columns(parcels)
            query = SQL["insert_late_parcels"]
            given = {name: columns[name] for name in query.parameters if name in columns}
            await query.execute(
                self._connection, shard=self._shard, now=self._at, episodes=owners, **given
            )


def _place(gap: Gap) -> tuple[JobId, datetime]:
    return gap.job.id, gap.job.next_fire_at


def occurrences_of(settled: Settled) -> list[Occurrence]:
    """The late runs of a gap; all of them are put into parcels at once."""
    policy = policy_of_text(settled.gap.job.schedule)
    step = Step(settled.gap.job, None, settled.ids, settled.fires, settled.dues, overlap=policy)
    latest = max(settled.dues, default=settled.gap.until_at)
    return split_near(step, latest)[0]


@kept_by_text(POLICIES_BYTES_MAX, factor=0)
def policy_of_text(schedule: str) -> OverlapPolicy:
    """The policy of late fires, from a stored schedule; equal texts are read once."""
    return policy_of(overlap_of(loads(schedule)), planned_late=True)


def _dropped(settled: Settled, end: str | None) -> list[tuple[DueJob, DroppedFires]]:
    """What is written down; of a job that has ended, also what would have run."""
    dropped = list(settled.dropped)
    if end is not None:
        dropped += [DroppedFires(fire, end) for fire in settled.fires]
    return [(settled.gap.job, one) for one in dropped]


def _first(wanted: int | None, otherwise: int) -> int:
    return otherwise if wanted is None else wanted
