"""The whole line in one test process: a real coordinator, and a worker of a few statements.

The worker leases, executes in no time and finishes with the statements of the store. It keeps the
evidence: which run of which fire began when. Checks are made over that evidence, not over rows.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.service import Coordinator
from betimes.domain import ids
from betimes.domain.ids import JobId, NodeId, RunId, ShardId, WorkerId
from betimes.domain.leased import Applicant
from betimes.domain.parcel import SUSPECT_AFTER, Parcel
from betimes.domain.parcel import Lane as ParcelLane
from betimes.domain.states import RunState
from betimes.domain.terms import Terms
from betimes.store import nodes
from betimes.store.admit import Admission, admit
from betimes.store.ask import execute, many
from betimes.store.database import Database
from betimes.store.lease import terms_in
from betimes.store.nodes import NodeCard
from betimes.store.pool import Connection, Lane
from betimes.store.publish import parcel_columns
from betimes.store.queries import load
from betimes.store.release import Freed, release
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock

PARCELS, FINISH = load("parcels"), load("finish")
WORKER = WorkerId(UUID(int=7))
TTL = timedelta(seconds=30)
BACKOFF = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Started:
    """One attempt, as the job itself saw it."""

    run: RunId
    job: JobId | None
    fire_at: datetime | None
    revision: int | None
    at: datetime


@dataclass(slots=True)
class Held:
    """A run under way."""

    shard: ShardId
    home: asyncpg.Record
    row: asyncpg.Record

    @property
    def parcel(self) -> UUID:
        return UUID(int=self.home["id"].int)

    @property
    def fence(self) -> int:
        return int(self.home["fence"])


def _is_gated(parcel: asyncpg.Record) -> bool:
    return parcel["line"] is not None or parcel["gate"] is not None


@dataclass
class Line:
    """Coordinator, queue and worker, moved by hand."""

    database: Database
    clock: ManualClock
    coordinator: Coordinator
    started: list[Started] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    told: list[RunId] = field(default_factory=list)

    @classmethod
    async def make(cls, database: Database, clock: ManualClock) -> "Line":
        node = NodeId(ids.compose(1, 0, 1))
        coordinator = Coordinator(
            node=node,
            database=database,
            clock=clock,
            telemetry=Telemetry(clock=clock),
            settings=CoordinatorSettings(),
            database_settings=DatabaseSettings(),
            tzdata="2026a",
        )
        return cls(database, clock, coordinator)

    async def coordinate(self, seconds: float, *, without: Collection[str] = ()) -> None:
        """Let time pass with the coordinator alive and nobody leasing."""
        for _ in range(int(seconds * 2)):
            self.clock.advance(0.5)
            await self._coordinate(without=without)

    async def live(self, seconds: float) -> None:
        """Let time pass with everybody at work."""
        for _ in range(int(seconds)):
            self.clock.advance(1)
            await self._coordinate()
            await self.finish()
            await self.lease()
            await self.finish()

    async def lease(self) -> int:
        """Lease everything visible and start what is still wanted."""
        before = len(self.held)
        for place in await self._many(
            PARCELS["find_waiting"],
            tenant=None,
            now=self.clock.now(),
            suspect_after=SUSPECT_AFTER,
            suspects=False,
            queues=None,
            most=100,
            after_shard=-1,
            after_queue="",
            after_tenant=UUID(int=0),
            after_fair=-1,
            handlers=None,
        ):
            parcels = await self._many(
                PARCELS["lease_parcels"],
                shard=place["shard"],
                queue=place["queue"],
                tenant=place["tenant_id"],
                fair=place["fair"],
                now=self.clock.now(),
                suspect_after=SUSPECT_AFTER,
                suspects=False,
                parcels_max=100,
                slots=1_000,
                before=None,
                worker=WORKER,
                ttl=TTL,
                handlers=None,
            )
            for parcel in await self._admitted(place["shard"], parcels):
                await self._start(place["shard"], parcel)
        return len(self.held) - before

    async def _admitted(
        self, shard: ShardId, parcels: list[asyncpg.Record]
    ) -> list[asyncpg.Record]:
        """Those that are let in through the line of their job and their gate."""
        applicants = [
            Applicant(
                shard,
                one["id"],
                one["fence"],
                one["tenant_id"],
                one["queue"],
                Terms(one["fair"], one["gate"], one["when_full"], one["line"]),
                None,
            )
            for one in parcels
            if _is_gated(one)
        ]
        if not applicants:
            return parcels

        async def work(connection: Connection) -> Admission:
            return await admit(connection, WORKER, applicants, now=self.clock.now())

        done = await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)
        return [one for one in parcels if not _is_gated(one) or one["id"] in done.admitted]

    async def _released(self, held: Held) -> None:
        """Whoever waits for a run that has ended may come."""
        home, freed = held.home, Freed()
        terms = Terms(home["fair"], home["gate"], home["when_full"], home["line"])
        freed.note(home["tenant_id"], home["queue"], terms)

        async def work(connection: Connection) -> None:
            await release(connection, freed)

        if _is_gated(home):
            await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _start(self, shard: ShardId, parcel: asyncpg.Record) -> None:
        runs = parcel["run_ids"]
        rows = await self._many(
            PARCELS["read_wanted_runs"], shard=shard, ids=runs, low=min(runs), high=max(runs)
        )
        if not rows:
            await self._execute(PARCELS["delete_parcels"], shard=shard, ids=[parcel["id"]])
        for row in rows:
            self.held.append(Held(shard, parcel, row))
        for held in [one for one in self.held if one.parcel == parcel["id"]]:
            row = held.row
            if row["cancel_at"] is not None:
                await self._end(held, RunState.CANCELLED)
                continue
            self.started.append(
                Started(row["id"], row["job_id"], row["fire_at"], row["revision"], self.clock.now())
            )

    async def finish(self) -> None:
        """End what is under way: as asked, else successfully."""
        for held in list(self.held):
            run = held.row["id"]
            asked = await self._many(
                FINISH["find_cancelled"],
                shard=held.shard,
                runs=[run],
                fences=[held.fence],
                low=run,
                high=run,
            )
            if asked:
                self.told.append(run)
            await self._end(held, RunState.CANCELLED if asked else RunState.SUCCEEDED)
        await self.check()

    async def fail(self) -> None:
        """Let everything under way fail and wait for its retry."""
        for held in list(self.held):
            await self._end(held, RunState.RETRY_WAIT)

    async def _end(self, held: Held, state: RunState) -> None:
        self.held.remove(held)
        row, now = held.row, self.clock.now()
        await self._execute(
            FINISH["finish_otherwise"],
            shard=held.shard,
            worker=WORKER,
            runs=[row["id"]],
            low=row["id"],
            high=row["id"],
            states=[int(state)],
            attempts=[row["attempt"] + 1],
            fences=[held.fence],
            started=[now],
            finished=[None if state is RunState.RETRY_WAIT else now],
            results=[None],
            errors=[None],
            reasons=[None],
        )
        if any(one.parcel == held.parcel for one in self.held):
            gone = [row["id"]]
            await self._execute(
                FINISH["shrink_parcel"], shard=held.shard, id=held.parcel, gone=gone
            )
        else:
            await self._execute(PARCELS["delete_parcels"], shard=held.shard, ids=[held.parcel])
        if state is RunState.RETRY_WAIT:
            await self._again(held)
        await self._released(held)

    async def _again(self, held: Held) -> None:
        home, at = held.home, self.clock.now() + BACKOFF
        parcel = Parcel(
            shard=held.shard,
            id=ids.ParcelId(ids.compose(ids.to_ms(at), held.shard, 1)),
            tenant=home["tenant_id"],
            queue=home["queue"],
            priority=home["priority"],
            visible_at=at,
            runs=(held.row["id"],),
            lane=ParcelLane.RETRY,
            fence=ids.Fence(held.fence),
            terms=terms_in(home),
        )
        columns = parcel_columns([parcel])
        await self._execute(PARCELS["insert_parcels"], **columns)

    async def check(self) -> None:
        """What is true at every moment.

        No run is in two parcels, and what is in one is published. No fire has two runs, or a run
        and a decision.
        """
        rows = await self._fetch("SELECT unnest(run_ids) AS id FROM betimes.parcels")
        twice = [run for run, times in Counter(row["id"] for row in rows).items() if times > 1]
        assert not twice, "a run is in two parcels"
        rows = await self._fetch(
            "SELECT job_id, fire_at FROM betimes.runs WHERE trigger IN (0, 3)"
            " GROUP BY 1, 2 HAVING count(*) > 1"
        )
        assert not rows, "a fire has two runs"
        rows = await self._fetch(
            "SELECT runs.id FROM betimes.runs JOIN betimes.decisions USING (shard, job_id)"
            " WHERE runs.trigger = 0 AND runs.state <> 7 AND runs.fire_at"
            " BETWEEN decisions.fire_at AND coalesce(decisions.until_at, decisions.fire_at)"
        )
        assert not rows, "a fire has a run and a decision"
        rows = await self._fetch(
            "SELECT parcels.shard, runs.id, shards.published_through FROM betimes.parcels"
            " CROSS JOIN LATERAL unnest(run_ids) AS held (run_id)"
            " JOIN betimes.runs ON runs.shard = parcels.shard AND runs.id = held.run_id"
            " JOIN betimes.shards ON shards.shard = parcels.shard WHERE runs.state = 0"
        )
        beyond = [
            row["id"]
            for row in rows
            if row["published_through"] is None
            or ids.time_ms_of(row["id"]) > ids.to_ms(row["published_through"])
        ]
        assert not beyond, "a run in a parcel is not published"

    async def executed(self, job: JobId) -> list[datetime]:
        """The fires that began, as often as they did."""
        return [one.fire_at for one in self.started if one.job == job and one.fire_at is not None]

    async def _coordinate(self, *, without: Collection[str] = ()) -> None:
        card = NodeCard(
            id=self.coordinator.node, name="n", version="0", tzdata="test", roles=("coordinator",)
        )
        await nodes.beat(self.database, card, skew_ms=None, draining=False, now=self.clock.stated())
        await self.coordinator.tick(without=without)

    async def _many(self, query: Any, **given: Any) -> list[asyncpg.Record]:
        async with self.database.connection(Lane.ENGINE) as connection:
            return await many(connection, query, **given)

    async def _execute(self, query: Any, **given: Any) -> None:
        async with self.database.connection(Lane.ENGINE) as connection:
            await execute(connection, query, **given)

    async def _fetch(self, statement: str) -> list[asyncpg.Record]:
        async with self.database.connection(Lane.ENGINE) as connection:
            return await connection.fetch(statement)
