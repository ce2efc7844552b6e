"""Overlap of runs of one job: looked up and decided where their parcels are made.

    place     runs that need parcels now: what is free shares them, what is not due yet is held
    decide    what is due: it goes, it stands in line, or it is skipped, with the run it gave way to

Everything is read from run rows and parcels, under a lock on the shard's row or on the job's, so
nobody else makes parcels for the same job meanwhile. Runs that end meanwhile only make room.

The run just before answers for all earlier ones if it started under the rule and is over. So the
usual look-up is one probe of an index for each run; everything else is rare and may take longer.

Long because looking up and deciding are one thing under one lock.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from json import dumps
from typing import Any
from uuid import UUID

from betimes.domain.ids import (
    JobId,
    ParcelId,
    RunId,
    ShardId,
    TenantId,
    floor_of,
    time_ms_of,
    to_ms,
    to_text,
)
from betimes.domain.parcel import Hold, Waiting
from betimes.domain.run import bounds
from betimes.domain.states import RunState, Trigger
from betimes.fairness.overlap import (
    OVERLAP_SKIPPED,
    POLICIES,
    Earlier,
    OverlapPolicy,
    Unended,
    Verdict,
    answer,
    obstacle,
)
from betimes.store.ask import execute, many
from betimes.store.control import ask_to_end, end_runs, hold
from betimes.store.ending import EVENTS
from betimes.store.occurrences import Dropped, insert_decisions_together
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.telling import about, tell

SQL = load("overlap")
PARCELS = load("parcels")
OVERLAP_CANCELLED = "OVERLAP_CANCELLED"
LOOK_BACK = (timedelta(hours=1), timedelta(hours=26), timedelta(days=8))
"""How far back the run before is looked for, step by step, before the whole history is."""
EARLIER_PAGES = (64, 512, 4_096)
"""How many earlier runs are read, step by step, until one vouches for all before it."""
LINE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Bound:
    """A run under a policy; everything of its job with an id below `below` is earlier."""

    id: RunId
    shard: ShardId
    tenant: TenantId
    job: JobId
    policy: OverlapPolicy
    below: UUID
    parcel: ParcelId | None = None
    """Where it is held already."""


@dataclass(slots=True)
class Decided:
    """What became of runs that were due."""

    go: list[RunId] = field(default_factory=list)
    """Into a shared parcel, or into the line of their job."""
    stay: list[RunId] = field(default_factory=list)
    """Held until something outside of their line has ended."""
    skipped: dict[RunId, UUID] = field(default_factory=dict)


@dataclass(slots=True)
class _Standing:
    """One place in a line."""

    run: RunId
    parcel: ParcelId | None
    begun: bool
    undecided: bool
    visible_at: datetime | None = None

    def gives_way(self, run: RunId, now: datetime) -> bool:
        """Whether it is not decided upon, and later than a run: by its id, or by its time."""
        if not self.undecided:
            return False
        return self.run > run or (self.visible_at is not None and self.visible_at > now)


async def place(
    connection: Connection,
    shard: ShardId,
    waiting: Sequence[Waiting],
    *,
    now: datetime,
    reach: datetime | None = None,
) -> tuple[list[Waiting], dict[RunId, UUID]]:
    """The runs as they go into parcels, and those that were skipped with what they gave way to.

    `reach` is how far the shard is published: a run with an earlier id than that (caught up with,
    or made by hand) has to look at everything up to there.
    """
    return (await place_together(connection, {shard: waiting}, now=now, reach=reach))[shard]


async def place_together(
    connection: Connection,
    waiting: Mapping[ShardId, Sequence[Waiting]],
    *,
    now: datetime,
    reach: datetime | None = None,
) -> dict[ShardId, tuple[list[Waiting], dict[RunId, UUID]]]:
    """Runs of several shards: one look and one decision about all of them."""
    bound = [
        _bound(run, shard, reach)
        for shard, runs in waiting.items()
        for run in runs
        if run.overlap and run.job is not None
    ]
    unsure = await _unvouched(connection, bound)
    dues = {run.id: run.due_at for runs in waiting.values() for run in runs}
    due = [one for one in bound if one.id in unsure and dues[one.id] <= now]
    decided = await decide(connection, due, now=now, fresh={one.id for one in bound})
    held = (unsure - {one.id for one in due}) | set(decided.stay)
    skipped = decided.skipped
    return {
        shard: (
            [_placed(run, held=run.id in held) for run in runs if run.id not in skipped],
            {run.id: skipped[run.id] for run in runs if run.id in skipped},
        )
        for shard, runs in waiting.items()
    }


def _bound(run: Waiting, shard: ShardId, reach: datetime | None) -> Bound:
    if run.job is None:
        raise ValueError("only runs of jobs have a policy")
    below: UUID = run.id
    if reach is not None:
        below = max(below, floor_of(to_ms(reach) + 1))
    return Bound(run.id, shard, run.tenant, run.job, POLICIES[run.overlap], below)


def _placed(run: Waiting, *, held: bool) -> Waiting:
    if not run.overlap or run.job is None:
        return run
    line = run.job if POLICIES[run.overlap].waits else None
    return run._replace(line=line, held=Hold.VERDICT if held else Hold.NONE)


async def _unvouched(connection: Connection, bound: Sequence[Bound]) -> set[RunId]:
    """Those that cannot simply go."""
    unsure = {one.id for one in bound if one.below != one.id}
    wanted = [one for one in bound if one.below == one.id]
    high = max((one.id for one in wanted), default=None)
    for back in (*LOOK_BACK, None):
        if not wanted or high is None:
            break
        least = min(time_ms_of(one.id) for one in wanted)
        low = floor_of(0 if back is None else least - back // timedelta(milliseconds=1))
        rows = await many(
            connection,
            SQL["find_unvouched"],
            shards=[one.shard for one in wanted],
            ids=[one.id for one in wanted],
            jobs=[one.job for one in wanted],
            low=low,
            high=high,
        )
        found = {row["id"]: row["earlier"] for row in rows}
        unsure |= {run for run, earlier in found.items() if earlier is not None}
        wanted = [one for one in wanted if one.id in found and found[one.id] is None]
    # Nothing was ever before these; only something in the line of their job can be in the way.
    lines = await _lines(connection, {one.job: one.shard for one in wanted})
    return unsure | {one.id for one in wanted if lines.get(one.job)}


async def _lines(
    connection: Connection, jobs: Mapping[JobId, ShardId]
) -> dict[JobId, list[_Standing]]:
    if not jobs:
        return {}
    lines: dict[JobId, list[_Standing]] = {}
    for row in await many(
        connection,
        SQL["read_lines"],
        shards=list(jobs.values()),
        jobs=list(jobs),
        most=LINE_MAX,
    ):
        begun = row["leased"] or row["state"] == RunState.RETRY_WAIT
        undecided = row["held"] == Hold.VERDICT
        standing = _Standing(row["run_id"], row["parcel_id"], begun, undecided, row["visible_at"])
        lines.setdefault(row["line"], []).append(standing)
    return lines


async def decide(
    connection: Connection,
    due: Sequence[Bound],
    *,
    now: datetime,
    fresh: AbstractSet[RunId] = frozenset(),
) -> Decided:
    """Verdicts about runs that are due, of any shards, and their consequences for earlier ones.

    Those that come to their parcels together, `fresh`, are decided upon one after the other: none
    gives way to a later one of them.
    """
    decided = Decided()
    if not due:
        return decided
    bench = await _Bench.gather(connection, due, now=now, fresh=fresh)
    for one in sorted(due, key=lambda one: one.id):
        await bench.judge(connection, one, decided, now=now)
    shards = {one.id: one.shard for one in due}
    await skip(connection, shards, decided.skipped, now=now)
    return decided


@dataclass(frozen=True, slots=True)
class _Bench:
    """Everything that verdicts are made from; moves on with each of them."""

    earlier: Mapping[RunId, Sequence[Earlier]]
    blockers: Mapping[UUID, Earlier]
    lines: dict[JobId, list[_Standing]]

    @classmethod
    async def gather(
        cls,
        connection: Connection,
        due: Sequence[Bound],
        *,
        now: datetime,
        fresh: AbstractSet[RunId],
    ) -> "_Bench":
        earlier = await _look_back(connection, due, now=now, fresh=fresh)
        # Runs of one job are of one shard.
        blockers = {
            found.blocked_by: one.shard
            for one in due
            for found in earlier[one.id]
            if found.blocked_by
        }
        lines = await _lines(connection, {one.job: one.shard for one in due})
        return cls(earlier, await _blockers(connection, blockers), lines)

    async def judge(
        self, connection: Connection, one: Bound, decided: Decided, *, now: datetime
    ) -> None:
        """One verdict."""
        found = obstacle(one.id, one.policy, self.earlier.get(one.id, ()), self.blockers)
        while found in decided.skipped:
            found = decided.skipped[RunId(found)]
        line = self.lines.setdefault(one.job, [])
        ahead = [
            place for place in line if place.run != one.id and not place.gives_way(one.id, now)
        ]
        begun = [place.run for place in ahead if place.begun]
        queued = [place.run for place in ahead if not place.begun]
        outside = [] if found is None else [RunId(found)]
        verdict = answer(one.policy, Unended(len(begun) + len(outside), len(queued)))
        line[:] = [place for place in line if place.run != one.id]
        if verdict.verdict is Verdict.SKIP:
            decided.skipped[one.id] = (*outside, *begun, *queued)[0]
            return
        if verdict.drop_waiting:
            begun += await self._drop(connection, one, queued, now=now)
            line[:] = [place for place in line if place.run not in queued or place.run in begun]
        if verdict.cancel_running:
            await self._cancel(connection, one, [*outside, *begun], now=now)
        (decided.stay if outside else decided.go).append(one.id)
        if one.policy.waits:
            line.append(_Standing(one.id, one.parcel, begun=False, undecided=False))

    async def _drop(
        self, connection: Connection, one: Bound, queued: Sequence[RunId], *, now: datetime
    ) -> list[RunId]:
        """End what waits in favour of a newer run; returns what had begun meanwhile."""
        parcels = await hold(connection, one.shard, one.tenant, queued)
        begun = [run for run in queued if run in parcels and parcels[run].worker is not None]
        gone = {run: UUID(int=one.id.int) for run in queued if run not in begun}
        await skip(connection, dict.fromkeys(gone, one.shard), gone, now=now)
        await _delete(connection, one.shard, [parcels[run].id for run in gone if run in parcels])
        return begun

    async def _cancel(
        self, connection: Connection, one: Bound, running: Sequence[RunId], *, now: datetime
    ) -> None:
        """Ask attempts to end; what only waits for its retry ends at once."""
        parcels = await hold(connection, one.shard, one.tenant, running)
        leased = [run for run in running if run in parcels and parcels[run].worker is not None]
        rest = [run for run in running if run not in leased]
        await ask_to_end(connection, one.shard, leased, at=now, reason=OVERLAP_CANCELLED)
        await end_runs(
            connection,
            one.shard,
            rest,
            state=RunState.CANCELLED,
            reason=OVERLAP_CANCELLED,
            now=now,
        )
        await _blame(connection, one.shard, running, one.id)
        alone = [parcels[run].id for run in rest if run in parcels and len(parcels[run].runs) == 1]
        await _delete(connection, one.shard, alone)


async def _look_back(
    connection: Connection, due: Sequence[Bound], *, now: datetime, fresh: AbstractSet[RunId]
) -> dict[RunId, list[Earlier]]:
    """The earlier runs of each, newest first, as far back as anything may be in its way.

    Those of one job that wait look at the same runs, which are read once. A line may be longer than
    a page, and behind it may be the one that all of it waits for: so the look goes on until it
    comes to one that vouches for all before it, or to the first run of the job.
    """
    found: dict[tuple[ShardId, JobId, UUID], list[Earlier]] = {
        (one.shard, one.job, one.below): [] for one in due
    }
    left = {stretch: stretch[2] for stretch in found}
    for most in EARLIER_PAGES:
        if not left:
            break
        asked = list(left)
        numbers = [UUID(int=number) for number in range(len(asked))]
        rows = await many(
            connection,
            SQL["find_earlier"],
            shards=[shard for shard, _, _ in asked],
            ids=numbers,
            jobs=[job for _, job, _ in asked],
            uppers=list(left.values()),
            most=most,
            now=now,
        )
        pages: dict[UUID, list[Earlier]] = {number: [] for number in numbers}
        for row in rows:
            pages[row["id"]].append(_earlier(row["earlier"], row, fresh=row["earlier"] in fresh))
        left = {}
        for stretch, page in zip(asked, pages.values(), strict=True):
            found[stretch] += page
            if len(page) == most and not any(one.vouches for one in page):
                left[stretch] = page[-1].id
    return {one.id: found[one.shard, one.job, one.below] for one in due}


async def skip(
    connection: Connection,
    shards: Mapping[RunId, ShardId],
    skipped: Mapping[RunId, UUID],
    *,
    now: datetime,
) -> None:
    """End runs as skipped, each with its blocker, and record why their fires did not run."""
    if not skipped:
        return
    low, high = bounds(list(skipped))
    rows = await many(
        connection,
        SQL["skip_runs"],
        shards=[shards[run] for run in skipped],
        runs=list(skipped),
        blockers=list(skipped.values()),
        now=now,
        low=low,
        high=high,
    )
    told = {"state": RunState.SKIPPED.name.lower(), "reason": OVERLAP_SKIPPED}
    kind = EVENTS[RunState.SKIPPED]
    await tell(connection, [about(ShardId(row["shard"]), row, kind, **told) for row in rows])
    fires = [row for row in rows if row["trigger"] == Trigger.SCHEDULE]
    dropped = [_dropped(row, skipped[row["id"]]) for row in fires]
    await insert_decisions_together(connection, [row["shard"] for row in fires], dropped, now=now)


def _dropped(row: Any, blocker: UUID) -> Dropped:
    return Dropped(
        job=row["job_id"],
        tenant=row["tenant_id"],
        fire_at=row["fire_at"],
        until_at=None,
        fires=1,
        revision=row["revision"],
        code=OVERLAP_SKIPPED,
        detail=dumps({"blocked_by": to_text("run", blocker)}),
    )


async def _blockers(connection: Connection, wanted: Mapping[UUID, ShardId]) -> dict[UUID, Earlier]:
    ids = [RunId(one) for one in wanted]
    if not ids:
        return {}
    low, high = bounds(ids)
    shards = list(wanted.values())
    rows = await many(connection, SQL["read_blockers"], shards=shards, ids=ids, low=low, high=high)
    return {row["id"]: _earlier(row["id"], row) for row in rows}


def _earlier(run: UUID, row: Any, *, fresh: bool = False) -> Earlier:
    return Earlier(
        id=run,
        policy=POLICIES[row["overlap"]],
        ended=row["state"] >= RunState.SUCCEEDED,
        started=row["started"],
        undecided=fresh or row.get("undecided", False),
        later=row.get("later", False),
        moved=row.get("moved", False),
        blocked_by=row.get("blocked_by"),
    )


async def _blame(
    connection: Connection, shard: ShardId, runs: Sequence[RunId], blocker: RunId
) -> None:
    """Say in favour of which run others were asked to end."""
    if runs:
        low, high = bounds(runs)
        told = {"runs": list(runs), "low": low, "high": high, "blocker": blocker}
        await execute(connection, SQL["blame_run"], shard=shard, **told)


async def _delete(connection: Connection, shard: ShardId, parcels: Sequence[ParcelId]) -> None:
    if parcels:
        await execute(connection, PARCELS["delete_parcels"], shard=shard, ids=list(parcels))
