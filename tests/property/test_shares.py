"""Leases, crashes, new work and changed weights: nobody starves, and shares follow weights.

The machine drives the real store on a real database with the real order of turns. The model is a
few counts: who has been served how much by whom since when.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from math import ceil
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from betimes.domain.ids import ShardId, TenantId, WorkerId, compose
from betimes.domain.leased import LeasedParcel, Source
from betimes.domain.terms import Terms
from betimes.fairness.share import Shares
from betimes.ops.turns import Turns
from betimes.store.parcels import Parcels
from betimes.store.reap import Reaping
from betimes.store.rules import ReadingRules
from betimes.testing.postgres import PostgresKit
from property.test_limits import TTL, World
from worker_kit import enqueue, rows

TENANTS = tuple(TenantId(UUID(int=900 + number)) for number in range(3))
QUEUES = ("a", "b")
BUCKETS = (1, 2)
SHARDS = (ShardId(1), ShardId(2))
WORKERS = (1, 2)
WEIGHTS = st.sampled_from([1.0, 2.0, 3.0])
HELPING = 4
Place = tuple[TenantId, str, int]
BACKLOG = 40
"""Kept up in every place, so that everybody always waits."""


class Fairness(RuleBasedStateMachine):
    """Three tenants with two queues and two fairness keys each, all of them backlogged."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.turns = {number: Turns() for number in WORKERS}
        self.weights: dict[TenantId, float] = dict.fromkeys(TENANTS, 1.0)
        self.queues: dict[str, float] = dict.fromkeys(QUEUES, 1.0)
        self.waited: Counter[tuple[int, TenantId]] = Counter()
        self.had: dict[int, Counter[Place]] = {number: Counter() for number in WORKERS}
        """What each worker has served since it began to count."""
        self.reweighted = False
        self.names = iter(range(1, 1_000_000))

    def ask(self, statement: str, *arguments: Any) -> list[Any]:
        found: list[Any] = self.wait(rows(self.world.database, statement, *arguments))
        return found

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.wait(work)

    @initialize(weights=st.tuples(WEIGHTS, WEIGHTS, WEIGHTS), heavy=WEIGHTS)
    def begin(self, weights: tuple[float, float, float], heavy: float) -> None:
        for table in ("parcels", "runs", "limits", "queues", "attempts"):
            self.ask(f"DELETE FROM betimes.{table}")
        self.ask("DELETE FROM betimes.tenants WHERE id = ANY ($1::uuid[])", list(TENANTS))
        for tenant, weight in zip(TENANTS, weights, strict=True):
            self.ask(
                "INSERT INTO betimes.tenants (id, slug, name, weight) VALUES ($1, $2, 'x', $3)",
                tenant,
                f"s{tenant.int}",
                weight,
            )
            self.weights[tenant] = weight
            for queue in QUEUES:
                self.queues[queue] = heavy if queue == "b" else 1.0
                self.ask(
                    "INSERT INTO betimes.queues (tenant_id, name, weight, fairness)"
                    " VALUES ($1, $2, $3, 'key')",
                    tenant,
                    queue,
                    self.queues[queue],
                )
        self._top_up()

    @rule(worker=st.sampled_from(WORKERS), helping=st.integers(1, 3 * HELPING))
    def lease(self, worker: int, helping: int) -> None:
        self._serve(worker, helping)

    @rule(worker=st.sampled_from(WORKERS))
    def crash(self, worker: int) -> None:
        """It dies with what it has; who comes in its place knows nothing of who had how much."""
        self._lease(worker, HELPING)
        self._begin_anew(worker)
        self.world.clock.advance(TTL.total_seconds() + 1)
        for shard in SHARDS:
            reaping = Reaping(self.world.database, lambda: compose(1, 1, next(self.names)))
            self.wait(reaping.reap(shard, most=100, now=self.world.clock.now()))

    @rule(tenant=st.sampled_from(TENANTS), weight=WEIGHTS)
    def change_weight(self, tenant: TenantId, weight: float) -> None:
        self.ask("UPDATE betimes.tenants SET weight = $1 WHERE id = $2", weight, tenant)
        self.reweighted |= weight != self.weights[tenant]
        self.weights[tenant] = weight
        for worker in WORKERS:
            self._forget(worker)

    @rule(tenant=st.sampled_from(TENANTS), parcels=st.integers(1, 5))
    def crowd(self, tenant: TenantId, parcels: int) -> None:
        """Much more than the others have; it earns nobody a larger share."""
        for _ in range(parcels):
            self._add(SHARDS[0], tenant, QUEUES[0], BUCKETS[0], 100)

    def teardown(self) -> None:
        """With everybody waiting all the time, what is served follows the weights."""
        if not self.ask("SELECT FROM betimes.tenants WHERE id = $1", TENANTS[0]):
            return
        if self.reweighted:
            # What was served by other weights is no share of these.
            self._begin_anew(WORKERS[0])
        total = sum(self.weights.values())
        rounds = ceil(24 * total / min(self.weights.values()))
        before = self.had[WORKERS[0]].total()
        for _ in range(rounds):
            self._serve(WORKERS[0], HELPING)
        keys = self.had[WORKERS[0]]
        assert keys.total() - before == rounds * HELPING
        had: Counter[TenantId] = Counter()
        inside: Counter[tuple[TenantId, str]] = Counter()
        for (tenant, queue, _), runs in keys.items():
            had[tenant] += runs
            inside[tenant, queue] += runs
        for tenant, weight in self.weights.items():
            share = had[tenant] / had.total()
            assert share == pytest.approx(weight / total, rel=0.1), (tenant, had)
            of_queues = sum(self.queues.values())
            for queue, heavy in self.queues.items():
                part = inside[tenant, queue] / had[tenant]
                # Inside a tenant the counts are small: one helping more or less is no unfairness.
                one = HELPING / had[tenant]
                assert part == pytest.approx(heavy / of_queues, rel=0.1, abs=one), inside
                for bucket in BUCKETS:
                    half = keys[tenant, queue, bucket] / inside[tenant, queue]
                    one = HELPING / inside[tenant, queue]
                    assert half == pytest.approx(0.5, rel=0.1, abs=one), keys

    def _serve(self, worker: int, helping: int) -> list[LeasedParcel]:
        """One lease of a worker; nobody who waits is passed over for longer than the bound."""
        leased = self._lease(worker, helping)
        self.ask("DELETE FROM betimes.parcels WHERE worker_id = $1", WorkerId(UUID(int=worker)))
        for one in leased:
            self.had[worker][one.tenant, one.queue, one.terms.fair] += len(one.runs)
        served = {one.tenant for one in leased}
        total = sum(self.weights.values())
        for tenant, weight in self.weights.items():
            self.waited[worker, tenant] += 1
            if tenant in served:
                self.waited[worker, tenant] = 0
            # A helping may be three times as large as another.
            bound = 3 * (total / weight + len(TENANTS))
            assert self.waited[worker, tenant] <= bound, f"{tenant} starves"
        self._top_up()
        return leased

    def _lease(self, worker: int, helping: int) -> list[LeasedParcel]:
        turns, now = self.turns[worker], self.world.clock.now()
        parcels = Parcels(self.world.database, WorkerId(UUID(int=worker)))
        turns.rules = self.wait(ReadingRules(self.world.database).read())
        due: list[Source] = self.wait(
            parcels.find_waiting(queues=None, suspects=False, now=now, most=1_000)
        )
        sources = turns.pick(due, most=8)
        leased, _ = self.wait(
            parcels.lease(sources, slots=helping, parcels_max=8, ttl=TTL, now=now)
        )
        had: Counter[Source] = Counter()
        for one in leased:
            had[one.source] += len(one.runs)
        turns.charge(had)
        found: list[LeasedParcel] = leased
        return found

    def _begin_anew(self, worker: int) -> None:
        self.turns[worker], self.had[worker] = Turns(), Counter()
        self._forget(worker)

    def _forget(self, worker: int) -> None:
        for tenant in TENANTS:
            self.waited[worker, tenant] = 0

    def _top_up(self) -> None:
        found = self.ask(
            "SELECT tenant_id, queue, fair, sum(cardinality(run_ids)) AS runs FROM betimes.parcels"
            " WHERE deliveries < 2 GROUP BY tenant_id, queue, fair"
        )
        waiting = {(row["tenant_id"], row["queue"], row["fair"]): row["runs"] for row in found}
        for tenant in TENANTS:
            for queue in QUEUES:
                for bucket in BUCKETS:
                    if waiting.get((tenant, queue, bucket), 0) < BACKLOG:
                        shard = SHARDS[bucket % len(SHARDS)]
                        self._add(shard, tenant, queue, bucket, 100)

    def _add(self, shard: ShardId, tenant: TenantId, queue: str, bucket: int, count: int) -> None:
        self.wait(
            enqueue(
                self.world.database,
                self.world.clock.now(),
                ["noop"] * count,
                shard=shard,
                queue=queue,
                tenant=tenant,
                terms=Terms(fair=bucket),
            )
        )


@pytest.fixture
def world(postgres: PostgresKit) -> Iterator[World]:
    name = asyncio.run(postgres.create())
    made = World(postgres.dsn(name))
    yield made
    made.close()
    asyncio.run(postgres.drop(name))


def drive(world: World, *, examples: int) -> None:
    run_state_machine_as_test(
        type("Bound", (Fairness,), {"world": world}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            phases=(Phase.explicit, Phase.generate),  # Shrinking would take longer than reading.
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(600)
def test_shares_follow_weights_and_nobody_starves(world: World) -> None:
    drive(world, examples=6)


def unweighted(self: Shares[Any], who: Any, amount: float, weight: float) -> None:
    self._times[who] = self._times.get(who, self._now) + amount


def forgotten(self: Shares[Any], who: Any, amount: float, weight: float) -> None:
    self._times.setdefault(who, self._now)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("instead", [unweighted, forgotten], ids=["unweighted", "forgotten"])
def test_a_broken_share_is_noticed(world: World, instead: Any) -> None:
    """The same machine, its steps chosen so that it takes no luck to notice."""
    steps = type("Bound", (Fairness,), {"world": world})()
    steps.begin((1.0, 2.0, 3.0), 3.0)
    with patch.object(Shares, "charge", instead), pytest.raises(AssertionError):
        steps.teardown()
