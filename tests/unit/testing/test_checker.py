"""The checker is checked: a bad history per promise is flagged, a near miss passes."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from betimes.testing.checker import EXAMPLES_MAX, Verdict, expected_fires, judge, table
from betimes.testing.history import (
    OVERLAP_SKIPPED,
    Bounds,
    CompletionFact,
    DeathFact,
    FaultFact,
    History,
    JobFact,
    LeaseFact,
    PlanFact,
    RunFact,
    ShardFact,
    SkipFact,
    StartFact,
)

JOB, RUN, ADHOC, POISON = (UUID(int=number) for number in range(1, 5))
ALICE, BOB = UUID(int=100), UUID(int=200)
BOUNDS = Bounds(lateness=2.0, takeover=5.0, until=120.0)

Change = Callable[[History], object]


def good() -> History:
    """A history that keeps every promise and meets each of them."""
    return History(
        bounds=BOUNDS,
        acknowledged={JOB, ADHOC, POISON},
        jobs=[JobFact(JOB, every=60, created_at=10.0)],
        runs=[
            RunFact(RUN, JOB, 60.0, 60.0, state=4),
            RunFact(ADHOC, None, None, 70.0, state=4),
            RunFact(POISON, None, None, 71.0, state=5, max_attempts=2),
        ],
        skips=[SkipFact(JOB, 120.0, 120.0, "PAUSED")],
        starts=[
            StartFact(RUN, 1, 1, 7, 60.1, JOB, 60.0),
            StartFact(ADHOC, 1, 1, 7, 70.2),
            StartFact(POISON, 1, 1, 7, 71.1),
            StartFact(POISON, 2, 2, 8, 76.0),
        ],
        shards=[
            ShardFact(1, 0, ALICE, 1, 50.0, 1.0),
            ShardFact(2, 0, ALICE, 1, 60.0, 30.0),
            ShardFact(3, 0, BOB, 2, 60.0, 44.9),
            ShardFact(4, 0, BOB, 2, 70.0, 46.0),
        ],
        leases=[
            LeaseFact(1, RUN, 1, 60.0, 60.0),
            LeaseFact(2, ADHOC, 1, 70.0, 70.1),
            LeaseFact(3, POISON, 1, 71.0, 71.0),
            LeaseFact(5, POISON, 2, 71.0, 75.9),
            LeaseFact(7, POISON, 3, 71.0, 80.0),
        ],
        completions=[
            CompletionFact(4, RUN, 0, 4, 1, 60.2),
            CompletionFact(6, ADHOC, 1, 4, 1, 70.3),
            CompletionFact(8, POISON, 1, 5, 3, 80.1),
        ],
        plans=[PlanFact(JOB, next_fire_at=120.0, latest_fire_at=60.0)],
        faults=[FaultFact("kill coordinator", "c1", 40.0, 45.5, shards=(0,), owner=ALICE)],
        deaths=[DeathFact(POISON, 71.1), DeathFact(POISON, 76.0)],
        dead_letters={POISON},
        cancelled={ADHOC: 73.0},
        paused=[(JOB, 61.0, 121.0)],
        coordinator_refusals=3,
        worker_refusals=1,
    )


def run_twice(history: History) -> None:
    history.runs.append(replace(history.runs[0], id=UUID(int=50)))


def executed_twice(history: History) -> None:
    history.starts.append(replace(history.starts[0], run=UUID(int=50)))


def late(history: History) -> None:
    history.starts[1] = replace(history.starts[1], at=72.1)


def early(history: History) -> None:
    history.starts[0] = replace(history.starts[0], at=59.9)


def cursor_back(history: History) -> None:
    history.shards[2] = replace(history.shards[2], published_through=59.0)


def slow_takeover(history: History) -> None:
    history.shards[2] = replace(history.shards[2], at=45.2)
    history.shards[3] = replace(history.shards[3], at=46.5)


def gave_way(history: History, *, run: bool = True, said: bool = True) -> None:
    """A second fire that comes while the first one runs."""
    history.bounds = replace(history.bounds, until=180.0)
    if run:
        reason = OVERLAP_SKIPPED
        history.runs.append(RunFact(UUID(int=60), JOB, 180.0, 180.0, state=7, reason=reason))
    if said:
        history.skips.append(SkipFact(JOB, 180.0, 180.0, OVERLAP_SKIPPED))


def beside(history: History) -> None:
    """Another run of the job is leased before the first one has ended."""
    history.runs.append(RunFact(UUID(int=61), JOB, 60.5, 60.5, state=4))
    history.leases.append(LeaseFact(3, UUID(int=61), 1, 60.5, 60.1))


BAD: list[tuple[str, Change]] = [
    ("I4", lambda history: gave_way(history, said=False)),
    ("I4", lambda history: gave_way(history, run=False)),
    ("I18", beside),
    ("I1", lambda history: history.acknowledged.add(UUID(int=99))),
    ("I1", lambda history: history.acknowledged.discard(ADHOC)),
    ("I3", run_twice),
    ("I3", executed_twice),
    ("I4", lambda history: history.runs.pop(0)),
    ("I4", lambda history: history.skips.clear()),
    ("I4", lambda history: history.skips.append(SkipFact(JOB, 60.0, 60.0, "PAUSED"))),
    ("I4", lambda history: history.runs.append(RunFact(UUID(int=51), JOB, 90.0, 90.0, 4))),
    ("I5", late),
    ("I6", early),
    ("I6", cursor_back),
    ("I8", lambda history: history.plans.append(PlanFact(JOB, 60.0, 60.0))),
    ("I8", lambda history: history.plans.append(PlanFact(JOB, 120.0, 60.0, missing=1))),
    ("I9", lambda history: history.shards.append(ShardFact(5, 0, ALICE, 2, 70.0, 47.0))),
    ("I9", lambda history: history.leases.append(LeaseFact(9, RUN, 1, 60.0, 61.0))),
    ("I10", lambda history: history.shards.append(ShardFact(5, 0, ALICE, 1, 70.0, 47.0))),
    ("I10", lambda history: history.stale_accepted.append("a renewal of epoch 1")),
    ("I11", lambda history: history.completions.append(CompletionFact(9, RUN, 4, 4, 1, 61.0))),
    ("I11", lambda history: history.leases.insert(1, LeaseFact(3, RUN, 2, 60.0, 60.1))),
    ("I12", slow_takeover),
    ("I14", lambda history: history.runs.append(RunFact(UUID(int=52), None, None, 100.0, 3))),
    ("I15", lambda history: history.leases.pop(0)),
    ("I15", lambda history: history.starts.append(StartFact(POISON, 3, 3, 9, 80.1))),
    ("I17", lambda history: history.deaths.append(DeathFact(POISON, 80.0))),
    ("I17", lambda history: history.dead_letters.clear()),
    ("I17", lambda history: history.dead_letters.add(ADHOC)),
    ("I19", lambda history: history.cancelled.update({RUN: 59.9})),
    ("I19", lambda history: history.paused.append((JOB, 59.0, 61.0))),
]


def unknown_but_there(history: History) -> None:
    history.acknowledged.discard(ADHOC)
    history.unknown.add(ADHOC)


def unknown_and_gone(history: History) -> None:
    history.unknown.add(UUID(int=99))


def retried(history: History) -> None:
    """The same run again, under a higher fence, is no second run."""
    history.starts.append(StartFact(RUN, 2, 2, 8, 60.5, JOB, 60.0))
    history.leases.insert(1, LeaseFact(2, RUN, 2, 60.0, 60.4))
    history.completions[0] = replace(history.completions[0], fence=2)


def late_while_broken(history: History) -> None:
    history.faults.append(FaultFact("kill worker", "w1", 69.0, 71.0))
    late(history)


def barely_late(history: History) -> None:
    history.starts[1] = replace(history.starts[1], at=72.0)


def renewed_in_between(history: History) -> None:
    """The old owner was back before anybody had to take over."""
    history.faults[0] = replace(history.faults[0], ended_at=44.0)
    slow_takeover(history)


def planned_ahead(history: History) -> None:
    history.runs.append(RunFact(UUID(int=53), None, None, 121.0, 0))
    history.acknowledged.add(UUID(int=53))


def began_before_its_cancellation(history: History) -> None:
    """It was handed out before, and told to end with the next heartbeat."""
    history.cancelled[RUN] = 60.05


GOOD: list[Change] = [
    lambda history: history,
    unknown_but_there,
    unknown_and_gone,
    retried,
    late_while_broken,
    barely_late,
    renewed_in_between,
    planned_ahead,
    began_before_its_cancellation,
    gave_way,
]


@pytest.mark.parametrize(("promise", "change"), BAD)
def test_a_bad_history_is_flagged(promise: str, change: Change) -> None:
    history = good()
    change(history)
    finding = judge(history)[promise]
    assert finding.verdict is Verdict.FAIL
    assert finding.examples


@pytest.mark.parametrize("change", GOOD)
def test_a_near_miss_passes(change: Change) -> None:
    history = good()
    change(history)
    findings = judge(history)
    assert not [one for one in findings.values() if one.verdict is Verdict.FAIL], table(findings)


def test_every_promise_has_a_bad_history() -> None:
    assert {promise for promise, _ in BAD} == set(judge(good()))


def test_nothing_met_is_unknown_and_not_passed() -> None:
    findings = judge(History(bounds=BOUNDS))
    assert {one.verdict for one in findings.values()} == {Verdict.UNKNOWN}
    assert {one.verdict for one in judge(good()).values()} == {Verdict.PASS}


def test_examples_are_few_and_the_count_is_whole() -> None:
    history = History(bounds=BOUNDS, acknowledged={UUID(int=number) for number in range(100)})
    finding = judge(history)["I1"]
    assert (finding.wrong, len(finding.examples)) == (100, EXAMPLES_MAX)
    assert "I1" in table({"I1": finding})


def test_expected_fires_are_plain_arithmetic() -> None:
    assert expected_fires(60, 10.0, 180.0) == [60, 120, 180]
    assert expected_fires(60, 60.0, 119.9) == []
    assert expected_fires(1, 0.5, 3.0) == [1, 2, 3]
