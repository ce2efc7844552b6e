"""Six policies at each step: no two runs of a job side by side, and every fire accounted for.

Long because the policies are read beside each other.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest

from betimes.domain.ids import RunId
from betimes.domain.job import Job
from betimes.domain.states import RunState, Trigger
from betimes.fairness.overlap import OVERLAP_SKIPPED, OverlapPolicy
from betimes.ops import NewJob, create_job
from betimes.ops.backfill import backfill_job
from betimes.ops.change_run import Change, change_run
from betimes.ops.desk import Desk
from betimes.ops.manual import Overlap, Wish, run_now
from betimes.ops.pause import pause_job, resume_elapsed
from betimes.ops.runs import retry_run
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.store.overlap import OVERLAP_CANCELLED
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import TENANT, every, fetch, make_desk, run_row, runs_of

PERIOD = 12
FINAL = RunState.SUCCEEDED


@dataclass
class Case:
    """One job with a policy, and a line that is moved by hand."""

    database: Database
    clock: ManualClock
    desk: Desk
    line: Line
    job: Job
    began: datetime
    ended: list[RunId] = field(default_factory=list)

    def at(self, seconds: float) -> datetime:
        return self.began + timedelta(seconds=seconds)

    async def until(self, seconds: float) -> None:
        """Let time pass up to so many seconds after the beginning; nobody leases."""
        await self.line.coordinate((self.at(seconds) - self.clock.now()).total_seconds())

    async def states(self) -> dict[float, str]:
        """What became of each fire that is due, by its second."""
        rows = await runs_of(self.database, self.job.id)
        held = {run for parcel in await self.parcels() for run in parcel["run_ids"]}
        return {
            (row["fire_at"] - self.began).total_seconds(): shown(row, held)
            for row in rows
            if row["fire_at"] is not None and row["fire_at"] <= self.clock.now()
        }

    async def parcels(self) -> list[asyncpg.Record]:
        return await fetch(self.database, "SELECT * FROM betimes.parcels ORDER BY visible_at, id")

    async def run_at(self, seconds: float) -> asyncpg.Record:
        (row,) = [
            row
            for row in await runs_of(self.database, self.job.id)
            if row["fire_at"] == self.at(seconds)
        ]
        return row

    async def accounted(self) -> None:
        """Every fire has a run; exactly the skipped ones have a decision as well."""
        rows = await runs_of(self.database, self.job.id)
        decided = await fetch(self.database, "SELECT fire_at, code FROM betimes.decisions")
        skipped = [
            row["fire_at"]
            for row in rows
            if row["reason"] == OVERLAP_SKIPPED and row["trigger"] == Trigger.SCHEDULE
        ]
        assert sorted(row["fire_at"] for row in decided) == sorted(skipped)
        assert {row["code"] for row in decided} <= {OVERLAP_SKIPPED}
        for row in rows:
            gave_way = row["reason"] in {OVERLAP_SKIPPED, OVERLAP_CANCELLED}
            assert (row["blocked_by"] is not None) == gave_way
            assert row["blocked_by"] != row["id"]


def shown(row: asyncpg.Record, held: set[RunId]) -> str:
    if row["state"] >= FINAL:
        return RunState(row["state"]).name.lower()
    return "waits" if row["id"] in held else "lost"


async def begin(
    database: Database, clock: ManualClock, policy: str, *, period: int = PERIOD, **more: Any
) -> Case:
    """A job whose first run is under way one second after its fire."""
    desk, began = make_desk(database, clock), clock.now()
    definition = every(period, schedule={"overlap": policy, **more})
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    line = await Line.make(database, clock)
    case = Case(database, clock, desk, line, job, began)
    await case.until(period + 1)
    assert await line.lease() == 1
    return case


AFTER = {
    # What became of the second and third fire while the first runs on.
    "allow": ("waits", "waits"),
    "skip": ("skipped", "skipped"),
    "buffer_one": ("waits", "skipped"),
    "buffer_all": ("waits", "waits"),
    "cancel_running": ("waits", "waits"),
    "replace": ("skipped", "waits"),
}


@pytest.mark.parametrize("policy", [policy.value for policy in OverlapPolicy])
async def test_what_becomes_of_fires_while_a_run_takes_too_long(
    database: Database, clock: ManualClock, policy: str
) -> None:
    case = await begin(database, clock, policy)
    await case.until(3 * PERIOD + 1)
    found = await case.states()
    assert (found[2 * PERIOD], found[3 * PERIOD]) == AFTER[policy]
    await case.accounted()
    first = await case.run_at(PERIOD)
    asked = policy in {"cancel_running", "replace"}
    assert (first["cancel_at"] is not None) == asked
    if policy in {"skip", "buffer_one"}:
        assert (await case.run_at(3 * PERIOD))["blocked_by"] == first["id"]
    if policy == "replace":
        replaced = await case.run_at(2 * PERIOD)
        assert replaced["blocked_by"] == (await case.run_at(3 * PERIOD))["id"]


@pytest.mark.parametrize("policy", ["cancel_running", "replace"])
@pytest.mark.parametrize("waits_for_retry", [False, True])
async def test_whoever_was_cancelled_says_so_and_by_whom(
    database: Database, clock: ManualClock, policy: str, waits_for_retry: bool
) -> None:
    """One code for it, whether an attempt was asked to end or was still to come."""
    case = await begin(database, clock, policy)
    if waits_for_retry:
        await case.until(2 * PERIOD - 1)
        await case.line.fail()
    await case.until(2 * PERIOD + 1)
    await case.line.finish()
    first, second = await case.run_at(PERIOD), await case.run_at(2 * PERIOD)
    assert (first["state"], first["reason"]) == (RunState.CANCELLED, OVERLAP_CANCELLED)
    assert first["blocked_by"] == second["id"]
    await case.accounted()


async def test_fires_that_come_together_give_way_to_the_first_of_them(
    database: Database, clock: ManualClock
) -> None:
    """A pause has ended and nobody saw it: what is late by then comes to its parcels at once."""
    desk, began = make_desk(database, clock), clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(5, schedule={"overlap": "skip"})))
    line = await Line.make(database, clock)
    case = Case(database, clock, desk, line, job, began)
    await pause_job(desk, TENANT, job.id, until=case.at(12))
    await case.until(31)
    assert await resume_elapsed(desk, job.shard) == [job.id]
    first = await case.run_at(15)
    assert await case.states() == {
        5: "skipped",
        10: "skipped",
        15: "waits",
        20: "skipped",
        25: "skipped",
        30: "skipped",
    }
    for second in (20, 25, 30):
        assert (await case.run_at(second))["blocked_by"] == first["id"]


@pytest.mark.parametrize("policy", [policy.value for policy in OverlapPolicy])
async def test_a_run_that_ends_in_time_disturbs_nobody(
    database: Database, clock: ManualClock, policy: str
) -> None:
    case = await begin(database, clock, policy)
    await case.line.live(2 * PERIOD + 5)
    assert set((await case.states()).values()) == {"succeeded"}
    assert len(case.line.started) == 3
    await case.accounted()


@pytest.mark.parametrize(
    "policy", ["skip", "buffer_one", "buffer_all", "cancel_running", "replace"]
)
@pytest.mark.parametrize("step", ["running", "waiting", "retrying", "lost"])
async def test_never_two_at_once(
    database: Database, clock: ManualClock, policy: str, step: str
) -> None:
    """Whatever the first run is at: under way, still in the queue, between attempts, given up."""
    desk, began = make_desk(database, clock), clock.now()
    definition = every(PERIOD, schedule={"overlap": policy})
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    case = Case(database, clock, desk, await Line.make(database, clock), job, began)
    await case.until(PERIOD + 1)
    if step != "waiting":
        assert await case.line.lease() == 1
    if step == "retrying":
        await case.line.fail()
    if step == "lost":
        case.line.held.clear()
        await fetch(
            database,
            "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false",
        )
    for second in range(PERIOD + 2, 5 * PERIOD, 2):
        await case.until(second)
        await case.line.lease()
        assert len(case.line.held) <= 1, "two runs of one job are under way"
        if second % 10 == 0:
            await case.line.finish()
    await case.line.finish()
    await case.accounted()
    assert "lost" not in (await case.states()).values()


async def test_a_run_due_every_second_is_decided_when_it_is_due(
    database: Database, clock: ManualClock
) -> None:
    """It is published while the last one has not even begun; it runs all the same."""
    case = await begin(database, clock, "skip", period=1)
    await case.line.finish()
    for _ in range(20):
        await case.line.live(1)
    fires = await case.line.executed(case.job.id)
    assert len(fires) >= 20
    assert fires == sorted(set(fires))
    await case.accounted()


async def test_a_chain_of_skips_points_at_the_same_blocker(
    database: Database, clock: ManualClock
) -> None:
    case = await begin(database, clock, "skip", period=2)
    await case.until(200)
    rows = await runs_of(database, case.job.id)
    skipped = [row for row in rows if row["state"] == RunState.SKIPPED]
    assert len(skipped) > 90
    assert {row["blocked_by"] for row in skipped} == {case.line.held[0].row["id"]}
    assert len(await case.parcels()) <= 3
    await case.line.finish()
    await case.line.live(6)
    assert len(case.line.started) > 2
    await case.accounted()


async def test_a_held_run_that_was_cancelled_leaves_nothing_behind(
    database: Database, clock: ManualClock
) -> None:
    case = await begin(database, clock, "skip")
    await case.until(2 * PERIOD - 1)
    held = [parcel for parcel in await case.parcels() if parcel["held"] == 2]
    assert len(held) == 1
    await fetch(
        database,
        "UPDATE betimes.runs SET state = 6, finished_at = now() WHERE id = $1",
        held[0]["run_ids"][0],
    )
    await case.until(2 * PERIOD + 1)
    assert [parcel["held"] for parcel in await case.parcels()] == [0]
    # It ended without a verdict, so it says nothing about the run before it.
    await case.until(3 * PERIOD + 1)
    assert (await case.states())[3 * PERIOD] == "skipped"


@pytest.mark.parametrize("before", [policy.value for policy in OverlapPolicy])
@pytest.mark.parametrize("after", ["skip", "buffer_all", "cancel_running", "replace"])
async def test_an_edit_that_changes_the_policy_does_not_let_two_run(
    database: Database, clock: ManualClock, before: str, after: str
) -> None:
    case = await begin(database, clock, before)
    first = case.line.held[0].row["id"]
    definition = every(PERIOD, schedule={"overlap": after})
    await update_job(case.desk, TENANT, case.job.id, definition)
    for second in range(PERIOD + 2, 3 * PERIOD + 4, 2):
        await case.until(second)
        await case.line.lease()
        assert len(case.line.held) <= 1
    assert case.line.held[0].row["id"] == first
    row = await run_row(database, first)
    assert row is not None
    assert (row["cancel_at"] is not None) == (after in {"cancel_running", "replace"})
    await case.line.finish()
    await case.line.live(2 * PERIOD)
    await case.accounted()


async def test_fires_that_are_caught_up_with_go_one_after_the_other(
    database: Database, clock: ManualClock
) -> None:
    case = await begin(database, clock, "skip", catchup={"policy": "all"})
    await case.line.finish()
    clock.advance(10 * 60)
    for _ in range(120):
        await case.line.coordinate(0.5)
        await case.line.lease()
        assert len(case.line.held) <= 1
        await case.line.finish()
    fires = await case.line.executed(case.job.id)
    assert len(fires) == len(set(fires))
    late = [fire for fire in fires if fire < clock.now() - timedelta(seconds=90)]
    assert len(late) > 10, "catching up was dropped for overlap"
    await case.accounted()


@pytest.mark.parametrize(
    ("policy", "state"),
    [("skip", RunState.SKIPPED), ("buffer_one", RunState.QUEUED), ("allow", RunState.QUEUED)],
)
async def test_a_run_by_hand_obeys_the_policy(
    database: Database, clock: ManualClock, policy: str, state: RunState
) -> None:
    case = await begin(database, clock, policy)
    run = await run_now(case.desk, TENANT, case.job.id)
    row = await run_row(database, run)
    assert row is not None
    assert row["state"] == state
    assert not await fetch(database, "SELECT FROM betimes.decisions"), "it stands for no fire"
    beside = await run_now(case.desk, TENANT, case.job.id, Wish(overlap=Overlap.ALLOW))
    await case.line.lease()
    started = {one.run for one in case.line.started}
    assert beside in started
    assert (run in started) == (policy == "allow")


async def test_a_backfill_goes_one_after_the_other_beside_nothing(
    database: Database, clock: ManualClock
) -> None:
    case = await begin(database, clock, "skip")
    begin_at = case.began - timedelta(seconds=10 * PERIOD)
    await backfill_job(
        case.desk, TENANT, case.job.id, begin=begin_at, end=case.began, rate_per_second=1_000
    )
    for _ in range(10):
        await case.line.coordinate(0.5)
        await case.line.lease()
        assert len(case.line.held) == 1, "the live run is still under way"
    for _ in range(40):
        await case.line.finish()
        await case.line.coordinate(0.5)
        await case.line.lease()
        assert len(case.line.held) <= 1
    fires = await case.line.executed(case.job.id)
    assert len([fire for fire in fires if fire <= case.began]) == 11


async def test_a_fixed_delay_waits_and_goes_on(database: Database, clock: ManualClock) -> None:
    """Its one fire is never dropped: nobody would write the next one."""
    desk = make_desk(database, clock)
    definition = every(PERIOD, schedule={"mode": "fixed_delay"})
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    line = await Line.make(database, clock)
    await line.coordinate(PERIOD - 1)
    by_hand = await run_now(desk, TENANT, job.id)
    assert await line.lease() == 1
    await line.coordinate(3)
    await line.lease()
    assert [held.row["id"] for held in line.held] == [by_hand]
    await line.finish()
    await line.coordinate(1)
    await line.lease()
    assert len(await line.executed(job.id)) == 1
    assert not await fetch(database, "SELECT FROM betimes.decisions")


async def test_a_run_retried_by_hand_runs_at_once_and_is_seen(
    database: Database, clock: ManualClock
) -> None:
    case = await begin(database, clock, "skip")
    first = case.line.held[0].row["id"]
    await case.line._end(case.line.held[0], RunState.DEAD)
    await case.until(2 * PERIOD + 1)
    assert await case.line.lease() == 1
    await retry_run(case.desk, TENANT, first)
    assert await case.line.lease() == 1, "it was asked for by hand"
    case.line.held.sort(key=lambda held: held.row["id"] == first)
    await case.line._end(case.line.held[0], RunState.SUCCEEDED)
    await case.until(3 * PERIOD + 1)
    assert (await case.states())[PERIOD] == "waits"
    assert (await case.states())[2 * PERIOD] == "succeeded"
    await case.accounted()


async def test_the_next_owner_gives_the_verdicts(database: Database, clock: ManualClock) -> None:
    case = await begin(database, clock, "skip")
    await case.until(2 * PERIOD - 1)
    clock.advance(11)
    case.line.coordinator = (await Line.make(database, clock)).coordinator
    await case.line.coordinate(2)
    assert (await case.states())[2 * PERIOD] == "skipped"
    await case.accounted()


@pytest.mark.parametrize("policy", ["skip", "buffer_all"])
@pytest.mark.parametrize("by", [-8, 30], ids=["earlier", "later"])
async def test_a_run_that_was_moved_minds_the_others_and_they_mind_it(
    database: Database, clock: ManualClock, policy: str, by: int
) -> None:
    """Its id does not say any more when it runs; still no two are under way at once."""
    case = await begin(database, clock, policy, period=20)
    await case.until(25)
    await case.line.finish()
    second = await case.run_at(40)
    await change_run(case.desk, TENANT, second["id"], Change(due_at=case.at(40 + by)))
    starts = [26, *range(30, 120, 4)]
    for place in starts:
        await case.until(place)
        await case.line.lease()
        assert len(case.line.held) <= 1, "two runs of one job are under way"
        if place % 12 == 2:
            await case.line.finish()
    await case.line.finish()
    await case.accounted()
    started = {one.run: one.at for one in case.line.started}
    moved = await run_row(database, second["id"])
    assert moved is not None
    assert moved["moved"]
    assert moved["state"] >= FINAL
    if second["id"] in started:
        assert started[second["id"]] >= case.at(40 + by), "never before its time"
    third = await case.run_at(60)
    assert third["id"] in started, "it was in nobody's way before its time"
