"""The transition table is complete and final states are final."""

from itertools import product

import pytest

from betimes.domain.errors import IllegalTransition
from betimes.domain.states import (
    FINAL,
    JOB_TRANSITIONS,
    TRANSITIONS,
    JobState,
    RunState,
    Shown,
    check_job,
    check_run,
    shown,
)


def test_every_state_has_a_row_and_a_public_name() -> None:
    assert set(TRANSITIONS) == set(RunState)
    assert set(JOB_TRANSITIONS) == set(JobState)
    assert {shown(state) for state in RunState} == set(Shown)


@pytest.mark.parametrize(("before", "after"), list(product(RunState, RunState)))
def test_check_agrees_with_the_table(before: RunState, after: RunState) -> None:
    if after in TRANSITIONS[before]:
        check_run(before, after)
    else:
        with pytest.raises(IllegalTransition, match=f"cannot become {after.name.lower()}"):
            check_run(before, after)


def test_only_an_operator_brings_a_finished_run_back_and_only_into_the_queue() -> None:
    for state in FINAL:
        assert TRANSITIONS[state] <= {RunState.QUEUED}
    assert TRANSITIONS[RunState.SUCCEEDED] == frozenset()


def test_every_run_state_that_is_not_final_leads_to_a_final_one() -> None:
    for state in set(RunState) - FINAL:
        assert TRANSITIONS[state] & FINAL


def test_the_sentence_names_what_would_be_allowed() -> None:
    with pytest.raises(IllegalTransition, match="from there it can become nothing"):
        check_job(JobState.CANCELLED, JobState.ACTIVE)
    with pytest.raises(IllegalTransition, match="can become active"):
        check_job(JobState.COMPLETED, JobState.PAUSED)
