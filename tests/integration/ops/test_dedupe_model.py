"""Business keys against a plain model, with commits whose replies are lost in between.

The model is a few dictionaries and knows nothing of the product: who has a key since when and for
how long, and what became of every run. After every step the database must tell the same story.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from betimes.config.settings import DatabaseSettings
from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import UnknownOutcome
from betimes.domain.ids import RunId, ShardId, TenantId, compose
from betimes.domain.run import NewRun
from betimes.domain.states import RunState
from betimes.ops.dedupe import MadeRun, enqueue_made
from betimes.store import database as store
from betimes.store.database import Database
from betimes.store.prune import Pruning
from betimes.testing import ManualClock
from conftest import half
from ops_kit import SHARDS, fetch, lost_reply, make_desk

T = TypeVar("T")
KEYS = st.sampled_from(["a", "b"])
FORMS = st.sampled_from(list(DedupeForm))
WINDOWS = st.sampled_from([5, 60])
CRASHES = st.sampled_from(["none", "none", "lost", "undone"])
NUMBERS = count(1)


@contextmanager
def undone(clock: ManualClock) -> Iterator[None]:
    """The next commit fails before it happens; a second passes before everything is repeated."""
    real, failures = store._commit, iter([True])

    async def commit(connection: Any) -> None:
        if next(failures, False):
            clock.advance(1)
            await connection.execute("ROLLBACK")
            raise UnknownOutcome("nobody knows what became of it")
        await real(connection)

    async def no_wait(_: float) -> None:
        return

    with (
        patch.object(store, "_commit", commit),
        patch.object(clock, "sleep", new=no_wait),
    ):
        yield


@dataclass
class ModelKey:
    """Who has a key, since when, and for how long."""

    holder: RunId
    since: datetime
    window: timedelta


class Machine(RuleBasedStateMachine):
    """Wishes with keys, time, workers, the janitor and lost commits, in any order."""

    dsn = ""

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.database = self.do(
            Database.open(DatabaseSettings(), dsn=self.dsn, clock=self.clock, roll=half)
        )
        self.tenant = TenantId(compose(1, 0, next(NUMBERS)))
        self.do(
            fetch(
                self.database,
                "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, $2, 'model')",
                self.tenant,
                f"model-{self.tenant.int}"[-60:],
            )
        )
        self.desk = make_desk(self.database, self.clock)
        # Every example has runs of its own; entropy goes on where the last one stopped.
        self.desk.entropy(8 * next(NUMBERS) * 1_000)
        self.keys: dict[str, ModelKey] = {}
        self.runs: dict[RunId, str] = {}

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    # What happens

    @rule(key=KEYS, form=FORMS, seconds=WINDOWS, bare=st.booleans(), crash=CRASHES)
    def wish(self, key: str, form: DedupeForm, seconds: int, bare: bool, crash: str) -> None:
        window = None if bare and form is DedupeForm.UNIQUE else timedelta(seconds=seconds)
        at = self.clock.now()
        crashing: dict[str, AbstractContextManager[None]] = {
            "none": nullcontext(),
            "lost": lost_reply(self.clock),
            "undone": undone(self.clock),
        }
        dedupe = Dedupe(key=key, window=window, form=form)
        with crashing[crash]:
            (made,) = self.do(
                enqueue_made(self.desk, self.tenant, [NewRun(handler="h", dedupe=dedupe)])
            )
        again = at + timedelta(seconds=1)
        if crash == "undone" or (crash == "lost" and self.expected(key, form, at) == "reuse"):
            at = again  # nothing was left of the first try: the second one is the wish
        self.told(key, form, window, at, made)

    @rule(keys=st.lists(KEYS, min_size=2, max_size=4), form=FORMS)
    def batch(self, keys: list[str], form: DedupeForm) -> None:
        window, at = timedelta(seconds=30), self.clock.now()
        new = [
            NewRun(handler="h", dedupe=Dedupe(key=key, window=window, form=form)) for key in keys
        ]
        for key, made in zip(keys, self.do(enqueue_made(self.desk, self.tenant, new)), strict=True):
            self.told(key, form, window, at, made)

    @rule(seconds=st.sampled_from([1, 4, 20, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def work(self) -> None:
        """A worker takes the oldest run that is due."""
        rows = self.do(
            fetch(
                self.database,
                "UPDATE betimes.parcels SET worker_id = id, lease_until = visible_at, "
                "fence = fence + 1 WHERE id = (SELECT id FROM betimes.parcels WHERE tenant_id = $1 "
                "AND worker_id IS NULL AND visible_at <= $2 AND EXISTS (SELECT FROM betimes.runs "
                "WHERE runs.id = parcels.run_ids[1] AND runs.state < 4) ORDER BY rank LIMIT 1) "
                "RETURNING run_ids[1] AS run",
                self.tenant,
                self.clock.now(),
            )
        )
        for row in rows:
            assert self.runs[row["run"]] == "waiting"
            self.runs[row["run"]] = "started"

    @rule()
    def finish(self) -> None:
        for run in [run for run, state in self.runs.items() if state == "started"][:1]:
            self.runs[run] = "over"
            self.do(
                fetch(
                    self.database,
                    "UPDATE betimes.runs SET state = 4, finished_at = due_at, attempt = 1 "
                    "WHERE id = $1",
                    run,
                )
            )
            self.do(fetch(self.database, "DELETE FROM betimes.parcels WHERE run_ids[1] = $1", run))

    @rule()
    def prune(self) -> None:
        pruning = Pruning(self.database)
        for shard in range(SHARDS):
            self.do(pruning.keys(ShardId(shard), now=self.clock.now()))

    # What must be

    def expected(self, key: str, form: DedupeForm, now: datetime) -> str:
        held = self.keys.get(key)
        if held is None:
            return "create"
        state = self.runs[held.holder]
        within = now - held.since < held.window
        active = state in ("waiting", "started")
        if form is DedupeForm.UNIQUE:
            return "reuse" if active or within else "create"
        if form is DedupeForm.THROTTLE:
            return "reuse" if within else "create"
        return "replace" if within and state == "waiting" else "create"

    def told(
        self, key: str, form: DedupeForm, window: timedelta | None, at: datetime, made: MadeRun
    ) -> None:
        expected, held = self.expected(key, form, at), self.keys.get(key)
        assert made.deduplicated == (expected == "reuse")
        if expected == "reuse":
            assert held is not None
            assert made.id == held.holder
            return
        assert made.id not in self.runs, "a run was made twice"
        assert made.replaced == (held.holder if held and expected == "replace" else None)
        if held and expected == "replace":
            self.runs[held.holder] = "replaced"
        self.runs[made.id] = "waiting"
        self.keys[key] = ModelKey(made.id, at, window or timedelta(0))

    @invariant()
    def the_database_tells_the_same(self) -> None:
        if not hasattr(self, "database"):
            return
        rows = self.do(
            fetch(
                self.database,
                "SELECT runs.id, state, reason, EXISTS (SELECT FROM betimes.parcels WHERE "
                "worker_id IS NOT NULL AND run_ids[1] = runs.id) AS leased FROM betimes.runs "
                "WHERE tenant_id = $1",
                self.tenant,
            )
        )
        told = {}
        for row in rows:
            state = "started" if row["leased"] else "waiting"
            if row["state"] >= RunState.SUCCEEDED:
                state = "replaced" if row["reason"] == "DEDUPED" else "over"
            told[row["id"]] = state
        assert told == self.runs

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.do(self.database.close())
            self.runner.close()


@pytest.mark.timeout(180)
def test_keys_behave_as_the_model_says(dsn: str) -> None:
    machine = type("BoundMachine", (Machine,), {"dsn": dsn})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=30, stateful_step_count=25, deadline=None)
    )
