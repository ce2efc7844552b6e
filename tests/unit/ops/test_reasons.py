"""Every reason why a run waits, from facts alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import Fence, JobId, RunId, TenantId, floor_of, to_ms
from betimes.domain.parcel import Lane
from betimes.domain.run import Run
from betimes.domain.states import RunState, Trigger
from betimes.ops.codes import CODES, fix_of, summary_of
from betimes.ops.facts import ceilings
from betimes.ops.reasons import Ceiling, Estimate, Facts, Spent, estimate, why_it_waits
from betimes.store.explain import Crowd, HeldFor, Place, Places, Standing, Surroundings
from betimes.store.queues import Queue
from betimes.store.tenants import TenantState

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOLDER = RunId(UUID(int=7))

RUN = Run(
    id=RunId(UUID(int=1)),
    tenant=TenantId(UUID(int=2)),
    job=JobId(UUID(int=3)),
    revision=1,
    state=RunState.QUEUED,
    trigger=Trigger.SCHEDULE,
    priority=5,
    attempt=0,
    fence=Fence(0),
    queue="mail",
    handler="send",
    due_at=NOW - SECOND,
    fire_at=NOW - SECOND,
    created_at=None,
    first_started_at=None,
    started_at=None,
    finished_at=None,
    cancel_at=None,
    worker=None,
    reason=None,
    payload=None,
    options={},
    result=None,
    error=None,
)
PLACE = Place(
    id=UUID(int=1),
    worker=None,
    rank=NOW,
    visible_at=NOW - SECOND,
    lease_until=None,
    deliveries=0,
    lane=Lane.ON_TIME,
    fair=0,
    held=HeldFor.NOTHING,
    held_at=None,
    line=None,
    gate=None,
)
ABOVE = Surroundings(
    cluster_paused_at=None,
    tenant_state=TenantState.ACTIVE,
    tenant_reason=None,
    quotas={},
    owner=UUID(int=9),
    lease_until=NOW + SECOND,
    published_through=NOW,
)
FREE = Places(serving=1, able=1, draining=0, slots=10, busy=10)
PLAIN = Facts(
    run=RUN,
    now=NOW,
    above=ABOVE,
    places=FREE,
    place=PLACE,
    standing=Standing(ahead=0, higher=0, others=False),
)
FULL = Crowd(limit=2, in_flight=2, holders=[HOLDER], ahead=3)


def codes(facts: Facts) -> list[str]:
    return [reason.code for reason in why_it_waits(facts)]


def above(**changes: Any) -> Facts:
    return replace(PLAIN, above=replace(ABOVE, **changes))


def placed(**changes: Any) -> Place:
    return replace(PLACE, **changes)


def workers(**changes: Any) -> Facts:
    return replace(PLAIN, places=replace(FREE, **changes))


HELD = {"held": HeldFor.FULL, "held_at": NOW}

CASES: list[tuple[str, Facts, list[str]]] = [
    ("nothing but others", PLAIN, ["WORKERS_BUSY"]),
    ("cluster", above(cluster_paused_at=NOW), ["CLUSTER_PAUSED"]),
    ("tenant", above(tenant_state=TenantState.SUSPENDED), ["TENANT_SUSPENDED"]),
    ("queue", replace(PLAIN, queue=Queue(name="mail", paused_at=NOW)), ["QUEUE_PAUSED"]),
    (
        "a pause that is over",
        replace(PLAIN, queue=Queue(name="mail", paused_at=NOW, paused_until=NOW)),
        ["WORKERS_BUSY"],
    ),
    ("no worker", workers(serving=0, able=0), ["NO_WORKER_FOR_QUEUE"]),
    ("workers that leave", workers(serving=0, able=0, draining=2), ["WORKERS_DRAINING"]),
    ("no handler", workers(able=0), ["NO_WORKER_FOR_HANDLER"]),
    (
        "a full key",
        replace(PLAIN, place=placed(gate="k", **HELD), gate=FULL),
        ["CONCURRENCY_KEY_FULL"],
    ),
    (
        "a line",
        replace(PLAIN, place=placed(line=JobId(UUID(int=3)), **HELD), line=FULL),
        ["OVERLAP_BUFFERED"],
    ),
    (
        "a line, its key has room",
        replace(
            PLAIN,
            place=placed(gate="k", line=JobId(UUID(int=3)), **HELD),
            gate=replace(FULL, in_flight=1),
            line=FULL,
        ),
        ["OVERLAP_BUFFERED"],
    ),
    (
        "overlap undecided",
        replace(PLAIN, place=placed(held=HeldFor.OVERLAP, held_at=NOW, visible_at=NOW + SECOND)),
        ["OVERLAP_BUFFERED", "NOT_DUE"],
    ),
    (
        "approval",
        replace(PLAIN, place=placed(held=HeldFor.APPROVAL, held_at=NOW, lane=Lane.CATCH_UP)),
        ["CATCHUP_AWAITS_APPROVAL"],
    ),
    (
        "a ceiling",
        replace(PLAIN, ceilings=[Ceiling(kind="queue", name="mail", limit=2, in_flight=2)]),
        ["QUOTA_EXCEEDED"],
    ),
    (
        "a ceiling with room",
        replace(PLAIN, ceilings=[Ceiling(kind="queue", name="mail", limit=2, in_flight=1)]),
        ["WORKERS_BUSY"],
    ),
    (
        "a rate",
        replace(
            PLAIN,
            spent=[Spent(kind="queue", name="mail", limit=2, per=SECOND, free_at=NOW + SECOND)],
        ),
        ["RATE_LIMITED"],
    ),
    (
        "a retry",
        replace(
            PLAIN,
            run=replace(RUN, state=RunState.RETRY_WAIT, attempt=2),
            place=placed(visible_at=NOW + SECOND, lane=Lane.RETRY),
        ),
        ["RETRY_BACKOFF"],
    ),
    (
        "paced",
        replace(PLAIN, place=placed(visible_at=NOW + SECOND, lane=Lane.CATCH_UP)),
        ["CATCHUP_PACED"],
    ),
    (
        "jitter",
        replace(PLAIN, run=replace(RUN, due_at=NOW + SECOND), place=None),
        ["JITTER_DELAY"],
    ),
    (
        "later",
        replace(PLAIN, run=replace(RUN, due_at=NOW + SECOND, fire_at=NOW + SECOND), place=None),
        ["NOT_DUE"],
    ),
    ("no owner", replace(above(owner=None), place=None), ["SHARD_UNOWNED", "WORKERS_BUSY"]),
    (
        "an owner whose lease is over",
        replace(above(lease_until=NOW - SECOND), place=None),
        ["SHARD_UNOWNED", "WORKERS_BUSY"],
    ),
    (
        "a late owner",
        replace(above(published_through=NOW - 10 * SECOND), place=None),
        ["SCHEDULER_LAGGING", "WORKERS_BUSY"],
    ),
    (
        "others first",
        replace(PLAIN, standing=Standing(ahead=9, higher=4, others=True)),
        ["LOWER_PRIORITY", "FAIR_SHARE_WAIT", "WORKERS_BUSY"],
    ),
    (
        "all that is wrong, the stubborn first",
        replace(
            workers(serving=0, able=0),
            queue=Queue(name="mail", paused_at=NOW),
            ceilings=[Ceiling(kind="tenant", name="", limit=1, in_flight=1)],
        ),
        ["QUEUE_PAUSED", "NO_WORKER_FOR_QUEUE", "QUOTA_EXCEEDED"],
    ),
]


@pytest.mark.parametrize(
    ("facts", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_facts_become_reasons(facts: Facts, expected: list[str]) -> None:
    assert codes(facts) == expected


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_every_reason_reads_as_a_sentence(case: tuple[str, Facts, list[str]]) -> None:
    for reason in why_it_waits(case[1]):
        assert reason.code in CODES
        sentence = summary_of(reason.code, reason.evidence)
        assert sentence.endswith(".")
        assert "?" not in sentence, sentence


def test_what_the_evidence_lacks_is_left_out() -> None:
    full = {"key": "k", "in_flight": 2, "limit": 2, "job": "job_1"}
    assert summary_of("CONCURRENCY_KEY_FULL", full) == "The concurrency key k has 2 of 2 in flight."
    assert summary_of("CONCURRENCY_KEY_FULL", {}) == "Its concurrency key had no place free."
    assert fix_of("CONCURRENCY_KEY_FULL", {})[1] == ""
    assert fix_of("JOB_PAUSED", {"job": "job_1"}) == (
        "Resume the job.",
        "POST /v1/jobs/job_1/resume",
    )
    assert (summary_of("SOMETHING_NEW", {}), fix_of("SOMETHING_NEW", {})) == (
        "SOMETHING_NEW",
        ("", ""),
    )
    holders = {"holders": ["run_1", "run_2"]}
    assert summary_of("OVERLAP_BUFFERED", holders).endswith("has not ended (run_1, run_2).")
    tenant = replace(PLAIN, ceilings=[Ceiling(kind="tenant", name="", limit=1, in_flight=1)])
    (reason,) = why_it_waits(tenant)
    assert summary_of(reason.code, reason.evidence) == "The tenant has 1 of 1 in flight."


def turn(facts: Facts) -> Estimate:
    return estimate(facts, why_it_waits(facts))


BUSY = replace(
    PLAIN,
    standing=Standing(ahead=9, higher=0, others=False),
    ended_lately=60,
    ended_since=NOW - 30 * SECOND,
)


def test_a_position_and_an_estimate() -> None:
    assert turn(PLAIN) == Estimate(0, None)
    assert turn(BUSY) == Estimate(9, NOW + 5 * SECOND)
    assert turn(replace(BUSY, standing=Standing(ahead=9, higher=0, others=False, more=True))).least
    held = replace(BUSY, gate=FULL, place=placed(gate="k", **HELD))
    assert turn(held) == Estimate(3, NOW + 2 * SECOND)
    assert turn(replace(PLAIN, standing=None)) == Estimate(None, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"above": replace(ABOVE, cluster_paused_at=NOW)},
        {"above": replace(ABOVE, tenant_state=TenantState.SUSPENDED)},
        {"queue": Queue(name="mail", paused_at=NOW)},
        {"places": replace(FREE, serving=0, able=0)},
        {"places": replace(FREE, able=0)},
        {"place": placed(held=HeldFor.APPROVAL, held_at=NOW, lane=Lane.CATCH_UP)},
    ],
)
def test_what_somebody_must_mend_first_has_no_time(changes: dict[str, Any]) -> None:
    assert turn(replace(BUSY, **changes)) == Estimate(9, None)


def test_never_before_the_next_attempt() -> None:
    later = NOW + 60 * SECOND
    retry = replace(
        BUSY,
        run=replace(RUN, state=RunState.RETRY_WAIT, attempt=1),
        place=placed(visible_at=later, lane=Lane.RETRY),
    )
    assert turn(retry).expected_at == later


def test_a_line_goes_at_the_pace_of_its_job() -> None:
    holder = RunId(floor_of(to_ms(NOW - 4 * SECOND)))
    line = Crowd(limit=1, in_flight=1, holders=[holder], ahead=2)
    place = placed(line=JobId(UUID(int=3)), **HELD)
    facts = replace(BUSY, place=place, line=line, took=10 * SECOND)
    assert turn(facts) == Estimate(2, NOW + 26 * SECOND)


def test_since_when_it_is_due_where_it_was_put_off() -> None:
    paced = replace(PLAIN, place=placed(visible_at=NOW + SECOND, lane=Lane.CATCH_UP))
    put_off = replace(workers(able=0), place=placed(visible_at=NOW + SECOND))
    assert why_it_waits(paced)[0].since == RUN.due_at
    (reason, *_) = why_it_waits(put_off)
    assert (reason.code, reason.since) == ("NO_WORKER_FOR_HANDLER", RUN.due_at)


def test_ceilings_that_apply() -> None:
    queue = Queue(name="mail", settings={"max_concurrency": 4})
    assert ceilings({}, None, 5, 5) == []
    assert ceilings({"max_in_flight": 9}, queue, 5, 3) == [
        Ceiling(kind="tenant", name="", limit=9, in_flight=5),
        Ceiling(kind="queue", name="mail", limit=4, in_flight=3),
    ]
