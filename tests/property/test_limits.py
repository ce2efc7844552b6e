"""Any order of leases, ends, crashes, drains and changed limits: never too many, nobody forgotten.

The machine drives the real store on a real database and compares it with a tiny model: how many
there may be, and what has to be done in the end.

Long because the machine and its model are read together.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from betimes.config.settings import DatabaseSettings
from betimes.domain.ids import JobId, ParcelId, TenantId, WorkerId, compose, to_ms
from betimes.domain.leased import LeasedParcel, Streak
from betimes.domain.states import RunState
from betimes.domain.terms import SKIP, WAIT, Terms
from betimes.domain.verdict import CONCURRENCY_KEY_FULL
from betimes.store.admit import declare
from betimes.store.database import Database
from betimes.store.ending import Again, Ending
from betimes.store.finish import Finishing, Held
from betimes.store.parcels import Parcels
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.store.reap import Reaping
from betimes.store.release import Freed
from betimes.store.repair import FIRST_GATE, FIRST_LINE, Repairing
from betimes.store.rules import ReadingRules
from betimes.testing import ManualClock
from betimes.testing.postgres import PostgresKit
from conftest import half
from worker_kit import SHARD, enqueue, rows

TENANT = TenantId(UUID(int=77))
TTL = timedelta(seconds=10)
QUEUES, GATES = ("a", "b"), ("g", "h")
LINES = tuple(JobId(compose(1_000, SHARD, number)) for number in (1, 2))
WORKERS = (1, 2, 3)
ROUNDS_MAX = 80
RATE = 3  # per second, for queue b
KEY, KEY_RATE = "r", 2  # per second, for runs that share this key


class World:
    """One database for all examples, on one loop."""

    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner()
        self.clock = ManualClock()
        self.database = self.wait(
            Database.open(DatabaseSettings(), dsn=dsn, clock=self.clock, roll=half)
        )

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    def close(self) -> None:
        self.wait(self.database.close())
        self._runner.close()


class Limits(RuleBasedStateMachine):
    """Workers lease, end, die and drain; people add work and change limits."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count(1)
        self.held: dict[int, dict[ParcelId, LeasedParcel]] = {one: {} for one in WORKERS}
        self.mosts: dict[str, int] = dict.fromkeys(GATES, 1)
        self.ceilings: dict[str | None, int | None] = dict.fromkeys([*QUEUES, None])
        self.started_b: Counter[datetime] = Counter()
        self.started_r: Counter[datetime] = Counter()
        self.began = self.world.clock.now()
        self.added: list[Any] = []

    @property
    def now(self) -> Any:
        return self.world.clock.now()

    def ask(self, statement: str, *arguments: Any) -> list[Any]:
        found: list[Any] = self.world.wait(rows(self.world.database, statement, *arguments))
        return found

    @initialize()
    def begin(self) -> None:
        for table in ("parcels", "runs", "limits", "queues", "attempts"):
            self.ask(f"DELETE FROM betimes.{table}")
        self.ask("DELETE FROM betimes.tenants WHERE id = $1", TENANT)
        self.ask("INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'm', 'M')", TENANT)
        for queue in QUEUES:
            self.ask(
                "INSERT INTO betimes.queues (tenant_id, name, rate_limit, rate_per_ms)"
                " VALUES ($1, $2, $3, 1000)",
                TENANT,
                queue,
                RATE if queue == "b" else None,
            )
        self.ask(
            "INSERT INTO betimes.limits (tenant_id, kind, key, rate_limit, rate_per_ms)"
            " VALUES ($1, 'rate', $2, $3, 1000)",
            TENANT,
            KEY,
            KEY_RATE,
        )
        # Somebody is seen to serve all queues, so those who wait have their claims.
        self.ask(
            "INSERT INTO betimes.workers (id, name, queues, slots, started_at, heartbeat_at)"
            " VALUES ($1, 'w', '{*}', 10, now(), 'infinity') ON CONFLICT DO NOTHING",
            UUID(int=1),
        )
        self.change_ceiling("a", 2)
        self.change_ceiling(None, 5)

    @rule(
        queue=st.sampled_from(QUEUES),
        gate=st.sampled_from([None, None, None, *GATES]),
        line=st.sampled_from([None, None, None, *LINES]),
        rate=st.sampled_from([None, None, KEY]),
        fair=st.integers(0, 2),
        skips=st.booleans(),
        runs=st.integers(1, 6),
    )
    def add(
        self,
        queue: str,
        gate: str | None,
        line: JobId | None,
        rate: str | None,
        fair: int,
        skips: bool,
        runs: int,
    ) -> None:
        terms = Terms(fair, gate, SKIP if skips and gate else WAIT, line, rate)
        self.added += self.world.wait(
            enqueue(
                self.world.database,
                self.now,
                ["noop"] * runs,
                queue=queue,
                tenant=TENANT,
                terms=terms,
            )
        )

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 6), suspects=st.booleans())
    def lease(self, worker: int, slots: int, suspects: bool) -> None:
        before = self._in_flight()
        slots_before = self._slots()
        self.world.wait(self._lease(worker, slots, suspects=suspects))
        self._check_growth(before, slots_before)

    @rule(worker=st.sampled_from(WORKERS), share=st.sampled_from([0.3, 1.0]), retry=st.booleans())
    def end(self, worker: int, share: float, retry: bool) -> None:
        mine = list(self.held[worker].values())
        for parcel in mine[: max(1, int(len(mine) * share))]:
            self.world.wait(self._end(worker, parcel, retry=retry))

    @rule(worker=st.sampled_from(WORKERS))
    def drain(self, worker: int) -> None:
        mine = [(one.id, one.fence) for one in self.held[worker].values()]
        if mine:
            parcels = self._parcels(worker)
            self.world.wait(parcels.give_back(SHARD, mine))
        self.held[worker] = {}

    @rule(worker=st.sampled_from(WORKERS))
    def crash(self, worker: int) -> None:
        self.held[worker] = {}

    @rule(seconds=st.sampled_from([0.2, 1.5, 11.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        for worker in WORKERS:
            if self.held[worker] and seconds < TTL.total_seconds():
                self.world.wait(self._heartbeat(worker))
            else:
                self.held[worker] = {}
        self.world.wait(self._look_after())

    @rule(gate=st.sampled_from(GATES), most=st.integers(1, 3))
    def change_gate(self, gate: str, most: int) -> None:
        self.mosts[gate] = most

        async def say(connection: Any) -> None:
            await declare(connection, TENANT, {gate: most}, now=self.now)

        self.world.wait(self.world.database.transact(say, lane=Lane.ENGINE, repeatable=True))

    @rule(queue=st.sampled_from([*QUEUES, None]), most=st.sampled_from([None, 0, 1, 3]))
    def change_ceiling(self, queue: str | None, most: int | None) -> None:
        self.ceilings[queue] = most
        self._agree(queue, most)

    @rule(place=st.integers(0, 50))
    def cancel(self, place: int) -> None:
        """A run that nobody holds is over before it began."""
        if self.added:
            self.ask(
                "UPDATE betimes.runs SET state = 6, finished_at = now() WHERE id = $1 AND state < 4"
                " AND NOT EXISTS (SELECT FROM betimes.parcels"
                "  WHERE $1 = ANY (run_ids) AND worker_id IS NOT NULL)",
                self.added[place % len(self.added)],
            )

    @invariant()
    def lines_go_one_by_one(self) -> None:
        for lined in self._slots()[1].values():
            assert lined <= 1

    @invariant()
    def nobody_is_in_two_parcels(self) -> None:
        found = self.ask("SELECT unnest(run_ids) AS run FROM betimes.parcels")
        assert len({row["run"] for row in found}) == len(found)

    @invariant()
    def the_rate_is_kept(self) -> None:
        seconds = (self.now - self.began).total_seconds()
        assert self.started_b.total() <= RATE + RATE * seconds
        assert self.started_b[self.now] <= RATE, "at one instant, one second's worth"
        assert self.started_r.total() <= KEY_RATE + KEY_RATE * seconds
        assert self.started_r[self.now] <= KEY_RATE, "at one instant, one second's worth"

    def teardown(self) -> None:
        """Everybody who is left finishes: all work is done, and every place is free again."""
        for queue in self.ceilings:
            self._agree(queue, None)
        self.ask("UPDATE betimes.limits SET rate_limit = NULL WHERE kind = 'rate'")
        self.held = {one: {} for one in WORKERS}
        for _ in range(ROUNDS_MAX):
            if not self.ask("SELECT FROM betimes.parcels LIMIT 1"):
                break
            self.world.clock.advance(TTL + timedelta(seconds=1))
            self.world.wait(self._look_after())
            for suspects in (False, True):
                self.world.wait(self._lease(1, 100, suspects=suspects))
                for parcel in list(self.held[1].values()):
                    self.world.wait(self._end(1, parcel, retry=False))
        left = self.ask("SELECT gate, line, held, deliveries FROM betimes.parcels")
        assert not left, f"forgotten: {[dict(row) for row in left]}"
        assert not self.ask("SELECT FROM betimes.runs WHERE state < 4")

    def _check_growth(
        self, before: Counter[str | None], slots_before: tuple[Counter[str], Counter[UUID]]
    ) -> None:
        """Nothing grows beyond what is allowed; what was allowed before may be more than now."""
        after, gates = self._in_flight(), self._slots()[0]
        for queue, most in self.ceilings.items():
            if most is not None:
                assert after[queue] <= max(most, before[queue]), f"{queue}: {after[queue]} > {most}"
        for gate, most in self.mosts.items():
            assert gates[gate] <= max(most, slots_before[0][gate])

    def _in_flight(self) -> Counter[str | None]:
        found: Counter[str | None] = Counter()
        for row in self.ask(
            "SELECT queue, cardinality(run_ids) AS n FROM betimes.parcels"
            " WHERE worker_id IS NOT NULL"
        ):
            found[row["queue"]] += row["n"]
            found[None] += row["n"]
        return found

    def _slots(self) -> tuple[Counter[str], Counter[UUID]]:
        found = self.ask("SELECT gate, line FROM betimes.parcels WHERE slot")
        gates = Counter(row["gate"] for row in found if row["gate"] is not None)
        return gates, Counter(row["line"] for row in found if row["line"] is not None)

    def _agree(self, queue: str | None, most: int | None) -> None:
        if queue is None:
            self.ask(
                "UPDATE betimes.tenants SET quotas = CASE WHEN $1::integer IS NULL THEN '{}'::jsonb"
                " ELSE jsonb_build_object('max_in_flight', $1::integer) END WHERE id = $2",
                most,
                TENANT,
            )
        else:
            self.ask(
                "UPDATE betimes.queues SET max_concurrency = $1::integer"
                " WHERE tenant_id = $2 AND name = $3",
                most,
                TENANT,
                queue,
            )

    def _parcels(self, worker: int) -> Parcels:
        return Parcels(self.world.database, WorkerId(UUID(int=worker)))

    async def _heartbeat(self, worker: int) -> None:
        renewed, _ = await self._parcels(worker).renew(ttl=TTL, now=self.now)
        ours = {(one.id, one.fence) for one in renewed}
        self.held[worker] = {
            name: one for name, one in self.held[worker].items() if (name, one.fence) in ours
        }

    async def _look_after(self) -> None:
        """What the janitor does."""
        reaping = Reaping(self.world.database, lambda: compose(1, SHARD, next(self.numbers)))
        await reaping.reap(SHARD, most=100, now=self.now)
        await Repairing(self.world.database).gates(FIRST_GATE, now=self.now)
        await Repairing(self.world.database).lines(FIRST_LINE, now=self.now)
        await Repairing(self.world.database).rates(FIRST_GATE, now=self.now)

    async def _lease(self, worker: int, slots: int, *, suspects: bool) -> None:
        parcels = self._parcels(worker)
        rules = await ReadingRules(self.world.database).read()
        sources = await parcels.find_waiting(queues=None, suspects=suspects, now=self.now, most=100)
        if not sources:
            return
        leased, _ = await parcels.lease(
            sources,
            limited={one for one in sources if rules.limited(one.tenant, one.queue)},
            slots=slots,
            parcels_max=8,
            suspects=suspects,
            ttl=TTL,
            now=self.now,
        )
        if not leased:
            return
        wanted = {run.id for run in await parcels.wanted(leased)}
        applicants = [
            one.applicant(self.mosts.get(one.terms.gate or ""))
            for one in leased
            if one.terms.is_gated and one.runs[0] in wanted
        ]
        gone: set[ParcelId] = set()
        if applicants:
            answer = await parcels.admit(applicants, now=self.now)
            gone = {one.id for one in applicants} - answer.admitted - answer.refused
            for one in leased:
                if one.id in answer.refused:
                    await self._skip(worker, one)
                    gone.add(one.id)
        freed = Freed(at=self.now)
        for one in leased:
            started = 0 if one.id in gone else sum(run in wanted for run in one.runs)
            if one.counted:
                freed.unused[one.tenant, one.queue] += len(one.runs) - started
            if one.queue == "b":
                self.started_b[self.now] += started
            if one.terms.rate is not None:
                self.started_r[self.now] += started
            if one.id in gone:
                continue
            if started:
                self.held[worker][one.id] = one
            else:
                await self._end(worker, one, retry=False)
        freed.unused = +freed.unused
        await parcels.refund(freed)

    async def _skip(self, worker: int, parcel: LeasedParcel) -> None:
        ending = self._ending(parcel, RunState.SKIPPED, reason=CONCURRENCY_KEY_FULL)
        held = Held({(parcel.id, parcel.fence)}, [parcel.id])
        await Finishing(self.world.database, WorkerId(UUID(int=worker))).otherwise(
            SHARD, held, [ending]
        )

    async def _end(self, worker: int, parcel: LeasedParcel, *, retry: bool) -> None:
        self.held[worker].pop(parcel.id, None)
        finishing = Finishing(self.world.database, WorkerId(UUID(int=worker)))
        held = Held({(parcel.id, parcel.fence)}, [parcel.id])
        if retry:
            endings = [
                self._ending(
                    parcel,
                    RunState.RETRY_WAIT,
                    run=run,
                    again=Again(
                        ParcelId(compose(to_ms(self.now), SHARD, next(self.numbers))),
                        self.now + timedelta(seconds=1),
                    ),
                )
                for run in parcel.runs
            ]
            await finishing.otherwise(SHARD, held, endings)
            return
        if parcel.terms.is_gated:
            held.freed.note(parcel.tenant, parcel.queue, parcel.terms)
        streak = Streak(parcel.id, parcel.fence, 1, self.now, self.now, list(parcel.runs))
        await finishing.succeeded(SHARD, held, [streak])

    def _ending(
        self,
        parcel: LeasedParcel,
        state: RunState,
        *,
        run: Any = None,
        reason: str | None = None,
        again: Again | None = None,
    ) -> Ending:
        return Ending(
            run=run or parcel.runs[0],
            parcel=parcel.id,
            fence=parcel.fence,
            tenant=parcel.tenant,
            queue=parcel.queue,
            priority=parcel.priority,
            job=None,
            handler="noop",
            state=state,
            attempt=1,
            started_at=None,
            ended_at=self.now,
            reason=reason,
            again=again,
        )


@pytest.fixture
def world(postgres: PostgresKit) -> Iterator[World]:
    name = asyncio.run(postgres.create())
    made = World(postgres.dsn(name))
    yield made
    made.close()
    asyncio.run(postgres.drop(name))


def drive(world: World, *, examples: int, phases: Sequence[Phase] = tuple(Phase)) -> None:
    class Bound(Limits):
        pass

    Bound.world = world
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(600)
def test_limits_hold_and_leak_nothing(world: World) -> None:
    drive(world, examples=25)


@pytest.mark.parametrize(
    ("statement", "pattern", "instead"),
    [
        ("count_slots", r"count\(\*\)", "0 * count(*)"),
        ("offer_parcels", r"SET held = 0,", "SET held = held,"),
    ],
)
def test_a_broken_rule_is_noticed(world: World, statement: str, pattern: str, instead: str) -> None:
    """The same machine with one rule taken out, its steps chosen so that it takes no luck.

    Those of ceilings and rates are taken out in the guards' tests, and in those that count tokens.
    """
    queries = load("limits")
    real = queries[statement]
    text, places = re.subn(pattern, instead, real.text)
    assert places
    queries[statement] = replace(real, text=text)
    try:
        with pytest.raises(AssertionError):
            _by_hand(world)
    finally:
        queries[statement] = real
    _by_hand(world)


def _by_hand(world: World) -> None:
    """One is in flight, another comes, the first one ends, the other one has its turn."""
    machine = type("Bound", (Limits,), {"world": world})()
    machine.begin()
    for worker in WORKERS[:2]:
        machine.add("a", "g", None, None, 0, skips=False, runs=1)
        machine.lease(worker, 6, suspects=False)
        machine.lines_go_one_by_one()
    machine.end(WORKERS[0], 1.0, retry=False)
    machine.teardown()
