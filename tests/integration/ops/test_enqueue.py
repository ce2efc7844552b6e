"""Ad-hoc runs: whole batches, one shard, parcels for what is near, nothing twice."""

from datetime import timedelta

import pytest

from betimes.domain.errors import Invalid, TooLarge
from betimes.domain.ids import shard_of, time_of
from betimes.domain.parcel import RUNS_MAX
from betimes.domain.run import NewRun
from betimes.domain.states import RunState
from betimes.ops import enqueue_run, enqueue_runs
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import (
    MINUTE,
    SECOND,
    TENANT,
    KeptHints,
    fetch,
    lost_reply,
    make_desk,
    parcelled,
    run_row,
)


async def test_a_run_due_now_is_queued_with_its_parcel(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    run = await enqueue_run(
        desk, TENANT, NewRun(handler="mail", payload=b"{}", options={"timeout_ms": 5})
    )
    row = await run_row(database, run)
    assert row is not None
    assert (row["state"], row["handler"], row["payload"]) == (RunState.QUEUED, "mail", b"{}")
    assert row["due_at"] == clock.now() == time_of(run)
    assert row["options"] == '{"timeout_ms": 5}'
    assert await parcelled(database) == [run]
    assert isinstance(desk.hints, KeptHints)
    assert desk.hints.hints == [(shard_of(run), "default", TENANT, clock.now())]


async def test_a_run_due_after_the_margin_is_left_to_the_publisher(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    near, far = await enqueue_runs(
        desk,
        TENANT,
        [NewRun(handler="a", delay=10 * SECOND), NewRun(handler="a", delay=11 * SECOND)],
    )
    assert await parcelled(database) == [near]
    row = await run_row(database, far)
    assert row is not None
    assert row["state"] == RunState.SCHEDULED
    assert time_of(far) == clock.now() + 11 * SECOND
    parcel = (await fetch(database, "SELECT visible_at, rank FROM betimes.parcels"))[0]
    assert parcel["visible_at"] == clock.now() + 10 * SECOND
    assert parcel["rank"] == parcel["visible_at"] - timedelta(seconds=50)


async def test_a_batch_lies_in_one_shard_and_the_next_in_another(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    first = await enqueue_runs(desk, TENANT, [NewRun(handler="a")] * 300)
    second = await enqueue_runs(desk, TENANT, [NewRun(handler="a")] * 2)
    assert len({shard_of(run) for run in first}) == 1
    assert {shard_of(run) for run in first} != {shard_of(run) for run in second}
    sizes = await fetch(database, "SELECT cardinality(run_ids) AS n FROM betimes.parcels")
    assert sorted(row["n"] for row in sizes) == [2, 300 - RUNS_MAX, RUNS_MAX]
    assert sorted(first + second) == await parcelled(database)


async def test_runs_that_differ_get_parcels_of_their_own(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    await enqueue_runs(
        desk,
        TENANT,
        [
            NewRun(handler="a"),
            NewRun(handler="b"),
            NewRun(handler="a", queue="mail"),
            NewRun(handler="a", priority=9),
            NewRun(target={"type": "http", "url": "https://example.org"}),
        ],
    )
    parcels = await fetch(
        database,
        "SELECT queue, priority, coalesce(handler, '') AS handler, cardinality(run_ids) AS n"
        " FROM betimes.parcels",
    )
    assert sorted(tuple(row) for row in parcels) == [
        ("default", 5, "", 1),
        ("default", 5, "a", 1),
        ("default", 5, "b", 1),
        ("default", 9, "a", 1),
        ("mail", 5, "a", 1),
    ]


async def test_a_time_that_has_passed_means_now(database: Database, clock: ManualClock) -> None:
    run = await enqueue_run(
        make_desk(database, clock), TENANT, NewRun(handler="a", due_at=clock.now() - MINUTE)
    )
    row = await run_row(database, run)
    assert row is not None
    assert row["due_at"] == clock.now()


@pytest.mark.parametrize(
    ("new", "error", "sentence"),
    [
        (NewRun(), Invalid, "expected a handler or a target, got neither"),
        (NewRun(handler="a", queue="a:b"), Invalid, "expected a queue without a colon"),
        (NewRun(handler="a", priority=10), Invalid, "expected a priority within 0-9, got 10"),
        (NewRun(handler="a\x00"), Invalid, "expected a handler of printable characters"),
        (NewRun(handler="a", delay=-SECOND), Invalid, "expected a delay"),
        (NewRun(handler="a", payload=b"x" * 300_000), TooLarge, "expected a payload"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_the_database_is_asked(
    database: Database, clock: ManualClock, new: NewRun, error: type[Invalid], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        await enqueue_run(make_desk(database, clock), TENANT, new)
    assert await parcelled(database) == []


async def test_a_lost_reply_of_the_commit_inserts_nothing_twice(
    database: Database, clock: ManualClock
) -> None:
    """The work is repeated with the same ids and finds what it has done."""
    desk = make_desk(database, clock)
    with lost_reply(clock):
        runs = await enqueue_runs(desk, TENANT, [NewRun(handler="a", delay=10.5 * SECOND)] * 3)
    rows = await fetch(database, "SELECT id, state FROM betimes.runs ORDER BY id")
    assert [row["id"] for row in rows] == runs
    assert {row["state"] for row in rows} == {RunState.SCHEDULED}
    assert await parcelled(database) == []
