"""The oracle of the chaos from outside: each wrong history is found, near misses are not."""

from dataclasses import replace
from uuid import UUID

import pytest

from blackbox.facts import Decision, History, Job, Pause, Row, Seen, Single, id_of
from blackbox.oracle import MUST_BE_ZERO, fires_between, judge
from blackbox.tables import result_fence

JOB = UUID(int=1)
UNTIL = 130.0


def run_id(number: int) -> UUID:
    return UUID(int=1000 + number)


def a_job(**more: object) -> Job:
    facts = {"id": JOB, "period": 10, "phase": 0, "invoked": 95.0, "acknowledged": 96.0}
    return Job(**{**facts, "kind": "http", "catchup": "all", "overlap": "allow", **more})  # type: ignore[arg-type]


def a_row(fire: int, **more: object) -> Row:
    facts = {"id": run_id(fire), "job": JOB, "fire": float(fire), "due": float(fire)}
    ended = {"state": "succeeded", "fence": 1, "finished": fire + 0.2, "result_fence": 1}
    return Row(**{**facts, **ended, **more})  # type: ignore[arg-type]


def a_fact(fire: int, *, fence: int = 1, at: float | None = None) -> Seen:
    seen_at = fire + 0.1 if at is None else at
    return Seen(run_id(fire), fence, fence, seen_at, seen_at, "ok", "target")


def good() -> History:
    """Fires at 100, 110, 120 and 130; the second was skipped, all others ran."""
    return History(
        until=UNTIL,
        jobs=[a_job()],
        rows=[a_row(100), a_row(120), a_row(130)],
        decisions=[Decision(JOB, 110.0, 110.0, 1, "JOB_PAUSED")],
        seen=[a_fact(100), a_fact(120), a_fact(130)],
    )


def with_rows(history: History, *rows: Row) -> None:
    changed = {row.id: row for row in rows}
    history.rows = [changed.pop(row.id, row) for row in history.rows] + list(changed.values())


def test_a_good_history_is_good() -> None:
    found = judge(good())
    assert found.good, found.examples
    assert (found.occurrences, found.became_runs, found.deliveries) == (4, 3, 3)
    assert found.decided == {"JOB_PAUSED": 1}


def lost(history: History) -> None:
    history.decisions.clear()


def enqueued_twice(history: History) -> None:
    history.rows.append(replace(history.rows[0], id=UUID(int=7), state="cancelled"))


def same_fence_twice(history: History) -> None:
    history.seen.append(a_fact(100, at=100.15))


def early(history: History) -> None:
    history.seen[0] = a_fact(100, at=99.8)


def run_and_decision(history: History) -> None:
    history.decisions.append(Decision(JOB, 120.0, 120.0, 1, "JOB_PAUSED"))


def decided_twice(history: History) -> None:
    history.decisions.append(Decision(JOB, 110.0, 110.0, 1, "CATCHUP_NONE"))


def wrong_counts(history: History) -> None:
    history.decisions[0] = Decision(JOB, 110.0, 110.0, 2, "JOB_PAUSED")


def taken_back(history: History) -> None:
    history.rows = [row for row in history.rows if row.fire != 100]
    history.decisions.append(Decision(JOB, 100.0, 100.0, 1, "CATCHUP_NONE"))


def unproven(history: History) -> None:
    history.seen = [fact for fact in history.seen if fact.run != run_id(100)]


def stale_accepted(history: History) -> None:
    history.seen.append(a_fact(100, fence=2, at=100.15))


def ran_while_paused(history: History) -> None:
    history.jobs[0].pauses.append(Pause(117.0, 118.0, 125.0, 126.0))


def started_after_cancel(history: History) -> None:
    history.cancelled[run_id(100)] = 65.0


def unexpected_fires(history: History) -> None:
    with_rows(history, a_row(95))
    history.seen.append(a_fact(95))


def acknowledged_lost(history: History) -> None:
    history.singles.append(Single(UUID(int=5), None, 100.0, 101.0))


def keys_with_two_answers(history: History) -> None:
    history.keys["chaos-1"] = {"run_a", "run_b"}


def workflows_wrong(history: History) -> None:
    history.workflow_runs[UUID(int=9)] = 2
    history.workflow_rows[UUID(int=9)] = ("succeeded", [run_id(100)])


def marks_fell(history: History) -> None:
    history.cursors = [(1, 4, 100.0), (1, 5, 99.0)]


def finished_before_start(history: History) -> None:
    with_rows(history, a_row(100, finished=100.0))


def unknown(history: History) -> None:
    with_rows(history, a_row(100, state="queued", finished=None, result_fence=None))


@pytest.mark.parametrize(
    "break_it",
    [
        lost, enqueued_twice, same_fence_twice, early, run_and_decision, decided_twice,
        wrong_counts, taken_back, unproven, stale_accepted, ran_while_paused, started_after_cancel,
        unexpected_fires, acknowledged_lost, keys_with_two_answers, workflows_wrong, marks_fell,
        finished_before_start, unknown,
    ],
)  # fmt: skip
def test_each_wrong_history_is_found(break_it) -> None:  # type: ignore[no-untyped-def]
    history = good()
    break_it(history)
    found = judge(history)
    assert {what for what in MUST_BE_ZERO if found.counts[what]} == {break_it.__name__}


def test_every_kind_of_wrong_has_its_history() -> None:
    assert all(what in globals() for what in MUST_BE_ZERO)


def test_near_misses_are_good() -> None:
    history = good()
    # Redelivered under a higher fence, whose result was accepted.
    with_rows(history, a_row(100, fence=2, result_fence=2, finished=100.6))
    history.seen.append(a_fact(100, fence=2, at=100.5))
    # Paused, but the fire lies while the pause was being asked for, and after the resume began.
    history.jobs[0].pauses.append(Pause(119.0, 121.0, 129.0, 131.0))
    # Gave way to an earlier run: a skipped run and a decision about it.
    with_rows(history, a_row(130, state="skipped", fence=0, result_fence=None))
    history.seen = [fact for fact in history.seen if fact.run != run_id(130)]
    history.decisions.append(Decision(JOB, 130.0, 130.0, 1, "OVERLAP_SKIPPED"))
    # Cancelled after it had started; a cursor that nobody had written yet.
    history.cancelled[run_id(100)] = 100.45
    history.cursors = [(1, 4, None), (1, 4, 100.0), (1, 5, 100.0)]
    found = judge(history)
    assert found.good, found.examples


def test_a_fire_while_the_job_was_being_created_may_be_missing() -> None:
    history = good()
    history.jobs[0] = a_job(invoked=95.0, acknowledged=104.0)
    history.rows = [row for row in history.rows if row.fire != 100]
    history.seen = [fact for fact in history.seen if fact.run != run_id(100)]
    assert judge(history).good


def test_fires_are_counted_from_the_phase() -> None:
    assert list(fires_between(a_job(phase=3), 100.0, 123.0)) == [103, 113, 123]
    assert list(fires_between(a_job(phase=3), 103.0, 112.0)) == []


def test_ids_are_read_as_the_service_writes_them() -> None:
    assert id_of("run_00000000000000000000000010") == UUID(int=32)
    assert id_of("job_7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == UUID(int=2**128 - 1)


def test_the_fence_is_found_in_results_of_targets_and_tasks() -> None:
    assert result_fence(b'{"fence": 3, "attempt": 2}') == 3
    assert result_fence(b'{"status": 200, "body": "{\\"fence\\": 4}"}') == 4
    assert result_fence(b'{"http": {"status": 200, "body": {"fence": 5}}}') == 5
    assert result_fence(b"null") is None
    assert result_fence(None) is None
