"""Runs whose deadline has passed, under the shard's epoch.

Those that waited to start are marked; those that were asked to end, and whose workers have not
ended them in the time they were given, are ended by force.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from json import loads
from operator import itemgetter
from typing import Any

from betimes.domain.ids import NodeId, RunId, ShardId, TenantId
from betimes.domain.states import FINAL, RunState, Trigger
from betimes.domain.verdict import START_DEADLINE_PASSED
from betimes.store.ask import many, one
from betimes.store.control import HeldParcel, end_runs, hold, take_out
from betimes.store.database import Database
from betimes.store.finish import MARGIN
from betimes.store.forcing import end_by_force, follow_on, following
from betimes.store.jobs import hold_jobs
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.release import Freed, release
from betimes.store.runs import lock_run
from betimes.store.shards import Claim, hold_shard
from betimes.store.specs import fixed_delay

SQL = load("deadlines")
RUNS = load("runs")
FINISH = load("finish")
AFTER = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Ended:
    """Runs that have ended because their time was up."""

    expired: Sequence[RunId] = ()
    cancelled: Sequence[RunId] = ()

    def __len__(self) -> int:
        return len(self.expired) + len(self.cancelled)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The store's side of looking for expired runs."""

    database: Database
    node: NodeId

    async def shards_to_look_at(
        self, shards: Sequence[ShardId], *, now: datetime | None
    ) -> list[ShardId]:
        """Those in which some run had to start since the last look."""
        rows = await self.database.many(
            SQL["find_shards_to_expire"], lane=Lane.ENGINE, shards=list(shards), now=now
        )
        return [ShardId(row["shard"]) for row in rows]

    async def expire(self, claim: Claim, *, most: int, now: datetime | None) -> Ended:
        """Mark what nobody has started or ended in time, a bounded number; safe to repeat.

        What a worker holds, or has held, was handed out in time: its attempts go on, unless
        somebody has asked for their end.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> Ended:
            held = await hold_shard(connection, claim, node=self.node, now=now)
            shard = claim.shard
            after = await one(connection, SQL["read_expired_through"], shard=shard)
            rows = await many(
                connection,
                SQL["find_overdue"],
                shard=shard,
                after=after["through"],
                now=held.now,
                most=most,
            )
            # Before any parcel: the next fire of a fixed delay follows the end of its run.
            fired = [row for row in rows if row["trigger"] == Trigger.SCHEDULE]
            await hold_jobs(connection, shard, {row["job_id"] for row in fired} - {None})
            late = [row for row in rows if not row["is_cancelled"]]
            slow = [row for row in rows if row["is_cancelled"]]
            ended = Ended(
                expired=await _expire(connection, shard, late, held.now),
                cancelled=await _force(connection, shard, slow, held.now),
            )
            through = held.now
            if len(rows) == most:
                # More may share the last deadline; if none of these could be marked, go on.
                through = rows[-1]["start_by"] + (timedelta(0) if ended else AFTER)
            await many(
                connection,
                SQL["move_expired"],
                shard=shard,
                node=self.node,
                epoch=claim.epoch,
                through=through,
            )
            return ended

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def _expire(
    connection: Connection, shard: ShardId, rows: Sequence[Any], now: datetime
) -> list[RunId]:
    by_tenant: dict[TenantId, list[RunId]] = {}
    for row in rows:
        by_tenant.setdefault(row["tenant_id"], []).append(row["id"])
    expired: set[RunId] = set()
    for tenant, runs in by_tenant.items():
        parcels = await hold(connection, shard, tenant, runs)
        ended = await end_runs(
            connection,
            shard,
            [run for run in runs if not _was_handed_out(parcels.get(run))],
            state=RunState.EXPIRED,
            reason=START_DEADLINE_PASSED,
            now=now,
        )
        await take_out(connection, shard, {run: parcels[run] for run in ended if run in parcels})
        expired |= ended
    await _follow(connection, shard, [row for row in rows if row["id"] in expired], now)
    return [row["id"] for row in rows if row["id"] in expired]


async def _force(
    connection: Connection, shard: ShardId, rows: Sequence[Any], now: datetime
) -> list[RunId]:
    """Their workers were asked, and had the time they were given."""
    reasons: dict[TenantId, dict[RunId, str]] = {}
    for row in rows:
        reasons.setdefault(row["tenant_id"], {})[row["id"]] = row["reason"]
    freed = Freed()
    done: set[RunId] = set()
    for tenant, runs in reasons.items():
        parcels = await hold(connection, shard, tenant, runs)
        for run, reason in runs.items():
            found, parcel = await lock_run(connection, run), parcels.get(run)
            if found is None or found.state in FINAL:
                continue
            if parcel is not None and parcel.worker is not None:
                freed.add(
                    await end_by_force(
                        connection, found, parcel, reason=reason, now=now, margin=MARGIN
                    )
                )
                done.add(run)
            else:
                follow = await following(connection, found, now)
                done |= await end_runs(
                    connection, shard, [run], state=RunState.CANCELLED, reason=reason, now=now
                )
                if follow is not None:
                    await follow_on(connection, shard, follow)
    await release(connection, freed)
    return sorted(done)


def _was_handed_out(parcel: HeldParcel | None) -> bool:
    return parcel is not None and (parcel.worker is not None or parcel.deliveries > 0)


async def _follow(
    connection: Connection, shard: ShardId, rows: Sequence[Any], now: datetime
) -> None:
    """A fixed delay counts from this end as from any other."""
    fired = [row for row in rows if row["job_id"] and row["trigger"] == Trigger.SCHEDULE]
    if not fired:
        return
    specs = await many(
        connection,
        RUNS["read_specs"],
        shard=shard,
        ids=[row["job_id"] for row in fired],
        revisions=[row["revision"] for row in fired],
    )
    delays = [(row, fixed_delay(loads(row["schedule"]))) for row in specs]
    goes_on = [(row, delay) for row, delay in delays if delay is not None]
    if goes_on:
        runs = {row["job_id"]: row["id"] for row in sorted(fired, key=itemgetter("id"))}
        await many(
            connection,
            FINISH["follow_jobs"],
            shard=shard,
            runs=[runs[row["id"]] for row, _ in goes_on],
            jobs=[row["id"] for row, _ in goes_on],
            revisions=[row["revision"] for row, _ in goes_on],
            next_fires=[now + delay for _, delay in goes_on],
        )
