"""The simulation itself: the same seed is the same world, and the judge sees what is wrong."""

import copy
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.testing.postgres import PostgresKit
from simulation.check import judge
from simulation.facts import Verdict
from simulation.history import Asked, Change, Executed, History, Trouble
from simulation.one import in_thread, simulate
from simulation.plan import make_plan
from simulation.server import Server, make_template, midnight, run_outside
from simulation.shrink import candidates
from simulation.world import JINXES, STATEMENTS, World

SECOND = timedelta(seconds=1)
QUIET, TROUBLED = 2, 4
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def server(postgres: PostgresKit) -> Iterator[Server]:
    dsn = postgres.dsn(run_outside(lambda: make_template(postgres)))
    opened = in_thread(lambda: Server(dsn))
    yield opened
    in_thread(opened.close)


@pytest.fixture(scope="module")
def lived(server: Server) -> History:
    """What was seen of a seed in which nothing goes wrong."""
    return in_thread(lambda: World(make_plan(QUIET), server).run())


@pytest.fixture
def history(lived: History) -> History:
    """The same, to be spoilt by one test."""
    return copy.deepcopy(lived)


def test_the_same_seed_is_the_same_world(server: Server) -> None:
    plan = make_plan(TROUBLED)
    first = in_thread(lambda: simulate(plan, server))
    second = in_thread(lambda: simulate(plan, server))
    assert first.executed
    assert (first.digest, first.violations) == (second.digest, second.violations)


def test_statements_that_are_made_to_fail_exist() -> None:
    assert set().union(*JINXES.values()) <= set(STATEMENTS.values())


def test_another_seed_is_another_world() -> None:
    assert make_plan(1) == make_plan(1) != make_plan(2)


def test_nothing_in_the_database_reads_the_real_clock(server: Server) -> None:
    defaults = server.read(
        "SELECT pg_get_expr(adbin, adrelid) AS said"
        " FROM pg_attrdef JOIN pg_class ON pg_class.oid = adrelid"
        " WHERE relnamespace = 'betimes'::regnamespace"
    )
    clocks = [row["said"] for row in defaults if "()" in row["said"]]
    assert clocks
    assert all(said.startswith("sim.") for said in clocks)
    functions = server.read(
        "SELECT proname, prosrc, proconfig FROM pg_proc"
        " WHERE pronamespace = 'betimes'::regnamespace AND proconfig IS NOT NULL"
    )
    assert all("search_path=sim, pg_catalog, pg_temp" in row["proconfig"] for row in functions)
    assert not any("pg_catalog.now" in row["prosrc"] for row in functions)


def test_times_of_a_seed_are_virtual(lived: History) -> None:
    times = [change.at for change in lived.changes] + [
        row[name]
        for row in lived.runs.values()
        for name in ("created_at", "started_at", "finished_at")
        if row[name] is not None
    ]
    assert times
    assert all(midnight() <= at < midnight(3) for at in times)


def test_a_quiet_seed_keeps_every_promise(history: History) -> None:
    verdict = judge(history)
    assert verdict.violations == []
    assert verdict.evidence["I4"]


def some_run(history: History, **wanted: object) -> dict[str, Any]:
    return next(
        row
        for row in history.runs.values()
        if all(row[name] == value for name, value in wanted.items()) and row["job_id"]
    )


def forget_a_run(history: History) -> None:
    run = history.executed[0].run
    del history.runs[run]


def enqueue_and_lose(history: History) -> None:
    lost = Asked(
        "enqueue", history.began, key="run-1", detail="0", ok=True, answer=str(UUID(int=7))
    )
    history.asked.append(lost)


def make_two_of_one_key(history: History) -> None:
    row = some_run(history, trigger=0)
    for number in (1, 2):
        history.runs[UUID(int=number)] = {**row, "id": UUID(int=number), "trigger": 2}


def run_twice(history: History) -> None:
    row = some_run(history, trigger=0)
    history.runs[UUID(int=1)] = {**row, "id": UUID(int=1)}


def lose_a_fire(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    del history.runs[row["id"]]
    history.executed = [one for one in history.executed if one.run != row["id"]]


def decide_beside_a_run(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    history.decisions.append(decision(row))


def count_wrong(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    lose_a_fire(history)
    history.decisions.append({**decision(row), "fires": 2})


def decision(row: dict[str, Any]) -> dict[str, Any]:
    known = {"job_id": row["job_id"], "fire_at": row["fire_at"], "until_at": None}
    return {**known, "fires": 1, "code": "CATCHUP_NONE"}


def lease_early(history: History) -> None:
    row = some_run(history, trigger=0, state=4, attempt=1)
    note(history, "parcel", row["due_at"] - SECOND, row, fence=9, runs=[str(row["id"])])


def let_the_mark_fall(history: History) -> None:
    fact: dict[str, Any] = {"old_epoch": 1, "epoch": 1, "owner": None, "old_owner": None}
    fact |= {"old_published": "2026-03-10T12:00:01", "published": "2026-03-10T12:00:00"}
    history.changes.append(Change(10**6, history.began, "shard", 0, None, fact))


def step_back(history: History) -> None:
    for row in history.jobs.values():
        row["next_fire_at"] = history.began


def reuse_an_epoch(history: History) -> None:
    fact = {"old_epoch": 4, "epoch": 4, "owner": "b", "old_owner": "a"}
    fact |= {"old_published": None, "published": None}
    history.changes.append(Change(10**6, history.began, "shard", 0, None, fact))


def repeat_a_fence(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    for number in (1, 2):
        note(history, "parcel", row["due_at"], row, n=number, fence=5, runs=[str(row["id"])])


def execute_twice(history: History) -> None:
    history.executed.append(copy.copy(history.executed[0]))


def accept_the_stale(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    note(history, "parcel", row["due_at"], row, n=-1, fence=99, runs=[str(row["id"])])


def execute_unleased(history: History) -> None:
    run = history.executed[0].run
    history.changes = [one for one in history.changes if str(run) not in one.fact.get("runs", ())]


def lease_what_has_ended(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    note(history, "parcel", row["due_at"], row, fence=99, runs=[str(row["id"])])
    again = copy.copy(next(one for one in history.executed if one.run == row["id"]))
    again.fence = 99
    history.executed.append(again)


def try_too_often(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    for number in range(9):
        fact = {"op": "update", "before": 3, "after": 3, "fence": number, "job": str(row["job_id"])}
        change = Change(-number, row["due_at"], "run", row["shard"], row["id"], fact)
        history.changes.insert(0, change)


def never_end(history: History) -> None:
    for row in history.runs.values():
        if row["state"] == 4:
            row["state"] = 0


def die_without_a_letter(history: History) -> None:
    history.letters.clear()
    for row in history.runs.values():
        if row["state"] == 4:
            row["state"] = 5


def fall_over(history: History) -> None:
    history.troubles.append(Trouble(history.began, "coordinator-0.1", ["KeyError: 1"]))


def rise_from_the_dead(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    note(history, "run", row["due_at"], row, op="update", before=4, after=1, fence=1)


def take_back_what_was_leased(history: History) -> None:
    row = some_run(history, trigger=0, state=4)
    note(history, "run", history.ended or row["due_at"], row, op="delete", before=0, after=None)


def stay_behind(history: History) -> None:
    assert history.ended is not None
    late = history.ended
    history.changes = [
        Change(one.n, late, one.kind, one.shard, one.id, one.fact) if one.kind == "parcel" else one
        for one in history.changes
    ]


def never_take_over(history: History) -> None:
    history.probed = (history.began, {0: 10**6})


def pause_in_vain(history: History) -> None:
    done = next(one for one in history.executed if one.fire is not None)
    assert done.fire is not None
    before, after = done.fire - SECOND, done.fire + SECOND
    history.asked += [
        Asked("pause", before, job=done.job, ended=before, ok=True),
        Asked("resume", after, job=done.job, detail="skip", ended=after, ok=True),
    ]


def cancel_in_vain(history: History) -> None:
    done = history.executed[-1]
    early = history.began - SECOND
    history.asked.append(Asked("cancel", early, detail=str(done.run), ended=early, ok=True))


def overlap(history: History) -> None:
    for job in history.plan.jobs:
        object.__setattr__(job, "overlap", "skip")
    for row in history.runs.values():
        row["overlap"] = 1
    for one in history.executed:
        one.at, one.ended = history.began, history.began + 5 * SECOND
    last = history.began + 9 * SECOND
    history.changes = [
        Change(one.n, last, one.kind, one.shard, one.id, one.fact) if one.kind == "run" else one
        for one in history.changes
    ]


def note(
    history: History, kind: str, at: Any, row: dict[str, Any], *, n: int = 10**6, **fact: Any
) -> None:
    history.changes.append(Change(n, at, kind, row["shard"], row["id"], {"job": None, **fact}))


BAD: list[tuple[str, Callable[[History], None]]] = [
    ("I1", forget_a_run),
    ("I1", enqueue_and_lose),
    ("I2", make_two_of_one_key),
    ("I3", run_twice),
    ("I4", lose_a_fire),
    ("I4", decide_beside_a_run),
    ("I4", count_wrong),
    ("I6", lease_early),
    ("I6", let_the_mark_fall),
    ("I8", step_back),
    ("I9", reuse_an_epoch),
    ("I9", repeat_a_fence),
    ("fence", execute_twice),
    ("I11", accept_the_stale),
    ("I12", never_take_over),
    ("I13", stay_behind),
    ("I14", never_end),
    ("I15", execute_unleased),
    ("I16", lease_what_has_ended),
    ("I16", try_too_often),
    ("I17", die_without_a_letter),
    ("I18", overlap),
    ("I19", pause_in_vain),
    ("I19", cancel_in_vain),
    ("I25", rise_from_the_dead),
    ("I25", take_back_what_was_leased),
    ("roles", fall_over),
]


@pytest.mark.parametrize(("invariant", "spoil"), BAD, ids=lambda one: getattr(one, "__name__", one))
def test_a_spoilt_history_is_found_out(
    history: History, invariant: str, spoil: Callable[[History], None]
) -> None:
    spoil(history)
    verdict: Verdict = judge(history)
    assert invariant in verdict.invariants


def test_a_repetition_under_a_newer_fence_is_no_double_execution(history: History) -> None:
    first: Executed = history.executed[0]
    again = copy.copy(first)
    again.fence += 1
    history.executed.append(again)
    assert "fence" not in judge(history).invariants


def test_a_smaller_plan_asks_only_for_jobs_it_has() -> None:
    for seed in range(20):
        for smaller in candidates(make_plan(seed)):
            assert all(act.job < len(smaller.jobs) for act in smaller.acts)
