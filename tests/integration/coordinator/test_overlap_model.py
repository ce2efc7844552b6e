"""Any order of ticks, leases, ends, crashes and runs by hand: the rule holds over lease intervals.

The model is one page: whoever starts is alone, whoever was skipped gave way to somebody who had not
ended, every fire has one run, and exactly the fires that gave way have a record of it.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import IllegalTransition
from betimes.domain.states import RunState, Trigger
from betimes.fairness.overlap import OVERLAP_SKIPPED
from betimes.ops import NewJob, create_job
from betimes.ops.change_run import Change, change_run
from betimes.ops.desk import Desk
from betimes.ops.manual import run_now
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.testing.postgres import PostgresKit
from line_kit import Line
from ops_kit import TENANT, every, fetch, lost_reply, make_desk

PERIOD = 3
POLICIES = ["skip", "buffer_one", "buffer_all", "cancel_running", "replace"]
TAKEOVER = timedelta(seconds=11)


def complaints(
    rows: list[asyncpg.Record],
    decided: list[datetime],
    parcelled: Counter[Any],
    *,
    began: datetime,
    now: datetime,
) -> list[str]:
    """What is wrong with a history of one job; the whole of the rule, said once more."""
    found: list[str] = []
    by_id = {row["id"]: row for row in rows}
    fires = sorted(row["fire_at"] for row in rows if row["trigger"] == Trigger.SCHEDULE)
    expected = [began + timedelta(seconds=PERIOD * n) for n in range(1, len(fires) + 1)]
    if fires != expected:
        found.append("a fire has no run, or two")
    gave_way = sorted(
        row["fire_at"]
        for row in rows
        if row["reason"] == OVERLAP_SKIPPED and row["trigger"] == Trigger.SCHEDULE
    )
    if sorted(decided) != gave_way:
        found.append("records and runs that gave way differ")
    for row in rows:
        if row["reason"] == OVERLAP_SKIPPED:
            blocker = by_id[row["blocked_by"]]
            ended = blocker["finished_at"]
            if ended is not None and ended < row["finished_at"]:
                found.append(f"{row['id']} gave way to a run that had ended before")
        waits = row["state"] < RunState.SUCCEEDED and row["due_at"] <= now - TAKEOVER
        if waits and parcelled[row["id"]] != 1:
            found.append(f"{row['id']} is in {parcelled[row['id']]} parcels")
    return found


class Overlaps(RuleBasedStateMachine):
    """One job, one coordinator at a time, one worker."""

    kit: PostgresKit
    policies = POLICIES

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.name: str | None = None

    def teardown(self) -> None:
        if self.name is not None:
            self.runner.run(self.database.close())
            self.runner.run(self.kit.drop(self.name))
        self.runner.close()

    @initialize(chosen=st.data())
    def begin(self, chosen: st.DataObject) -> None:
        policy = chosen.draw(st.sampled_from(self.policies))
        self.runner.run(self._begin(policy))

    async def _begin(self, policy: str) -> None:
        self.name = await self.kit.create()
        self.database = await Database.open(
            DatabaseSettings(), dsn=self.kit.dsn(self.name), clock=self.clock, roll=lambda: 0.5
        )
        self.desk: Desk = make_desk(self.database, self.clock)
        self.began = self.clock.now()
        definition = every(PERIOD, schedule={"overlap": policy})
        self.job = (await create_job(self.desk, TENANT, NewJob(definition=definition))).id
        self.line = await Line.make(self.database, self.clock)
        await self.line.coordinate(0.5)

    @rule(halves=st.integers(1, 8))
    def pass_time(self, halves: int) -> None:
        self.runner.run(self.line.coordinate(halves / 2))

    @rule()
    def lease(self) -> None:
        self.runner.run(self.line.lease())
        assert len(self.line.held) <= 1, "two runs of one job are under way"

    @precondition(lambda self: self.line.held)
    @rule(fails=st.booleans())
    def end(self, fails: bool) -> None:
        self.runner.run(self.line.fail() if fails else self.line.finish())

    @precondition(lambda self: self.line.held)
    @rule()
    def lose_the_worker(self) -> None:
        """It dies, and the janitor makes what it held visible again."""
        self.line.held.clear()
        self.runner.run(
            fetch(
                self.database,
                "UPDATE betimes.parcels SET worker_id = NULL, lease_until = NULL, slot = false"
                " WHERE worker_id IS NOT NULL",
            )
        )

    @rule()
    def lose_the_coordinator(self) -> None:
        """It dies without a word; another one takes over when its leases have run out."""
        self.clock.advance(TAKEOVER)
        self.runner.run(self._take_over())

    async def _take_over(self) -> None:
        self.line.coordinator = (await Line.make(self.database, self.clock)).coordinator
        await self.line.coordinate(0.5)

    @rule()
    def lose_a_reply(self) -> None:
        """Some commit of this pass happens, and nobody hears of it."""

        async def tick() -> None:
            with lost_reply(self.clock):
                await self.line.coordinate(0.5)

        self.runner.run(tick())

    @rule()
    def run_by_hand(self) -> None:
        self.runner.run(run_now(self.desk, TENANT, self.job))

    @rule(place=st.integers(0, 20), seconds=st.sampled_from([-5, 2, 6, 20]))
    def move(self, place: int, seconds: int) -> None:
        """Somebody gives a run that waits another time."""
        self.runner.run(self._move(place, timedelta(seconds=seconds)))

    async def _move(self, place: int, by: timedelta) -> None:
        waiting = await fetch(
            self.database, "SELECT id, due_at FROM betimes.runs WHERE state < 4 ORDER BY id"
        )
        if waiting:
            chosen = waiting[place % len(waiting)]
            with suppress(IllegalTransition):  # it runs, or is about to be published
                await change_run(
                    self.desk, TENANT, chosen["id"], Change(due_at=chosen["due_at"] + by)
                )

    @rule(place=st.integers(0, 20))
    def lose_a_parcel(self, place: int) -> None:
        """What cannot be: the parcel of a run that waits is gone; the sweeper makes it anew."""
        self.runner.run(self._lose_parcel(place))

    async def _lose_parcel(self, place: int) -> None:
        waiting = await fetch(
            self.database,
            "SELECT id FROM betimes.parcels WHERE worker_id IS NULL AND visible_at <= $1"
            " ORDER BY id",
            self.clock.now(),
        )
        if waiting:
            gone = waiting[place % len(waiting)]["id"]
            await fetch(self.database, "DELETE FROM betimes.parcels WHERE id = $1", gone)
            await fetch(self.database, "UPDATE betimes.shards SET swept_through = NULL")
            self.clock.advance(TAKEOVER)
            await self._take_over()
            while (
                self.clock.now() - timedelta(seconds=31) < self.began + timedelta(seconds=PERIOD)
                or not await self._all_parcelled()
            ):
                await self.line.coordinate(10)
                await self.line.coordinator.sweeper.tick()

    async def _all_parcelled(self) -> bool:
        lost = await fetch(
            self.database,
            "SELECT FROM betimes.runs WHERE state < $1 AND due_at <= $2 AND NOT EXISTS"
            " (SELECT FROM betimes.parcels WHERE runs.id = ANY (run_ids))",
            RunState.SUCCEEDED,
            self.clock.now(),
        )
        return not lost

    @invariant()
    def the_rule_holds(self) -> None:
        if self.name is not None:
            assert self.runner.run(self._complaints()) == []

    async def _complaints(self) -> list[str]:
        rows = await fetch(self.database, "SELECT * FROM betimes.runs WHERE job_id = $1", self.job)
        decided = await fetch(self.database, "SELECT fire_at FROM betimes.decisions")
        held = await fetch(self.database, "SELECT unnest(run_ids) AS id FROM betimes.parcels")
        return complaints(
            rows,
            [row["fire_at"] for row in decided],
            Counter(row["id"] for row in held),
            began=self.began,
            now=self.clock.now(),
        )


def machine(kit: PostgresKit, policies: list[str] = POLICIES) -> type[Overlaps]:
    return type("Machine", (Overlaps,), {"kit": kit, "policies": policies})


@pytest.mark.timeout(300)
def test_the_rule_holds_in_any_order(postgres: PostgresKit) -> None:
    run_state_machine_as_test(
        machine(postgres),
        settings=settings(
            max_examples=12,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def nobody(*_: Any, **__: Any) -> set[Any]:
    return set()


def nothing(*_: Any, **__: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("guard", "instead"), [("_unvouched", nobody), ("obstacle", nothing)], ids=["look", "judge"]
)
def test_without_its_guards_it_does_not(postgres: PostgresKit, guard: str, instead: Any) -> None:
    """Knocked out, the same steps let two runs of one job run side by side."""
    steps = machine(postgres, ["skip"])()
    try:
        with patch(f"betimes.store.overlap.{guard}", instead):
            steps.begin(_First())
            steps.pass_time(7)
            steps.lease()
            steps.pass_time(6)
            with pytest.raises(AssertionError, match="two runs of one job"):
                steps.lease()
    finally:
        steps.teardown()


def test_the_first_fires_of_a_job_mind_a_run_by_hand_before_them(postgres: PostgresKit) -> None:
    """They have their parcels from the beginning, further ahead than anything is published."""
    steps = machine(postgres, ["skip"])()
    try:
        steps.begin(_First())
        steps.run_by_hand()
        steps.lease()
        steps.pass_time(8)
        steps.lease()
        steps.the_rule_holds()
        steps.end(fails=False)
        steps.pass_time(8)
        steps.lease()
        assert steps.line.held, "the fire after it runs"
    finally:
        steps.teardown()


class _First:
    """Draws the first of what there is."""

    def draw(self, _: Any) -> str:
        return "skip"
