"""Business keys: the second wish is the first one, throttled or replaced; whoever comes at once."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import Invalid
from betimes.domain.ids import shard_of
from betimes.domain.run import NewRun
from betimes.domain.states import JobState, RunState
from betimes.ops.create import NewJob
from betimes.ops.dedupe import create_made, enqueue_made, key_of
from betimes.ops.end import cancel_job, delete_job
from betimes.ops.explain import explain_run
from betimes.ops.making import make_runs
from betimes.ops.runs import cancel_run
from betimes.store.database import Database
from betimes.store.prune import Pruning
from betimes.testing import ManualClock
from ops_kit import (
    OTHER,
    SHARDS,
    TENANT,
    add_tenant,
    every,
    fetch,
    lost_reply,
    make_desk,
    parcelled,
    run_row,
)

KEY = Dedupe(key="invoice 7")
SECONDS = timedelta(seconds=1)


def wish(dedupe: Dedupe | None = KEY, **changes: object) -> NewRun:
    return NewRun(handler="h", dedupe=dedupe, **changes)  # type: ignore[arg-type]


async def test_while_the_first_is_active_the_second_is_the_first(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    (first,) = await enqueue_made(desk, TENANT, [wish()])
    (second,) = await enqueue_made(desk, TENANT, [wish(payload=b"other")])
    assert (second.id, second.deduplicated, first.deduplicated) == (first.id, True, False)
    assert shard_of(first.id) == key_of(SHARDS, TENANT, KEY, "run").shard
    assert await parcelled(database) == [first.id]
    await cancel_run(desk, TENANT, first.id)
    (third,) = await enqueue_made(desk, TENANT, [wish()])
    assert (third.deduplicated, third.id != first.id) == (False, True)


async def test_a_window_holds_after_the_end(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1))
    (first,) = await enqueue_made(desk, TENANT, [wish(key)])
    await cancel_run(desk, TENANT, first.id)
    clock.advance(59)
    assert (await enqueue_made(desk, TENANT, [wish(key)]))[0].id == first.id
    clock.advance(1)
    assert (await enqueue_made(desk, TENANT, [wish(key)]))[0].id != first.id


async def test_throttle_lets_one_through_per_window(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1), form=DedupeForm.THROTTLE)
    made = []
    for _ in range(7):
        made += await enqueue_made(desk, TENANT, [wish(key)])
        clock.advance(20)
    assert [one.deduplicated for one in made] == [False, True, True] * 2 + [False]


async def test_debounce_keeps_the_last_and_pushes_it_out(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(seconds=30), form=DedupeForm.DEBOUNCE)
    made = []
    for number in range(4):
        made += await enqueue_made(desk, TENANT, [wish(key, payload=b"%d" % number)])
        clock.advance(8)
    assert [one.replaced for one in made] == [None, made[0].id, made[1].id, made[2].id]
    rows = [await run_row(database, one.id) for one in made]
    assert [row["state"] for row in rows if row] == [RunState.SKIPPED] * 3 + [RunState.SCHEDULED]
    last = rows[-1]
    assert last is not None
    assert last["due_at"] == clock.now() - 8 * SECONDS + key.window  # type: ignore[operator]
    why = await explain_run(desk, TENANT, made[0].id)
    assert [one.code for one in why.reasons] == ["DEDUPED"]


async def test_what_has_started_is_not_replaced(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1), form=DedupeForm.DEBOUNCE)
    (first,) = await enqueue_made(desk, TENANT, [wish(key, delay=timedelta(0))])
    await fetch(
        database,
        "UPDATE betimes.parcels SET worker_id = id, fence = 1, lease_until = now()",
    )
    (second,) = await enqueue_made(desk, TENANT, [wish(key)])
    assert (second.replaced, second.deduplicated) == (None, False)
    row = await run_row(database, first.id)
    assert row is not None
    assert row["state"] == RunState.QUEUED


async def test_a_batch_is_as_if_one_came_after_the_other(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    bouncing = Dedupe(key="b", window=timedelta(minutes=1), form=DedupeForm.DEBOUNCE)
    made = await enqueue_made(
        desk, TENANT, [wish(), wish(None), wish(), wish(bouncing), wish(None), wish(bouncing)]
    )
    assert [one.deduplicated for one in made] == [False, False, True, False, False, False]
    assert made[2].id == made[0].id
    assert made[5].replaced == made[3].id
    rows = await fetch(database, "SELECT id, state FROM betimes.runs")
    assert {row["id"] for row in rows} == {one.id for one in made}
    assert [row["id"] for row in rows if row["state"] == RunState.SKIPPED] == [made[3].id]


@pytest.mark.parametrize("form", list(DedupeForm))
async def test_many_at_once_leave_one(
    database: Database, clock: ManualClock, form: DedupeForm
) -> None:
    """Different transactions with the same key, in disorder; the index makes them one line."""
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1), form=form)
    answers = await asyncio.gather(*(enqueue_made(desk, TENANT, [wish(key)]) for _ in range(12)))
    rows = await fetch(database, "SELECT id FROM betimes.runs WHERE state < 4")
    assert len(rows) == 1
    made = [one for (one,) in answers]
    if form is DedupeForm.DEBOUNCE:
        assert {one.id for one in made} - {one.replaced for one in made} == {rows[0]["id"]}
    else:
        assert {one.id for one in made} == {rows[0]["id"]}
        assert sum(not one.deduplicated for one in made) == 1


async def test_a_group_recognises_keys(database: Database, clock: ManualClock) -> None:
    """What a group commit makes together: the same key many times is one run."""
    desk = make_desk(database, clock)
    wishes = [wish() for _ in range(20)] + [wish(None) for _ in range(5)]
    made = await make_runs(desk, TENANT, wishes, desk.next_shard())
    assert len({one.made.id for one in made[:20]}) == 1
    assert len(await fetch(database, "SELECT id FROM betimes.runs")) == 6


async def test_a_lost_reply_makes_nothing_twice(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    for form in DedupeForm:
        key = Dedupe(key=form, window=timedelta(minutes=1), form=form)
        (before,) = await enqueue_made(desk, TENANT, [wish(key)])
        with lost_reply(clock):
            (after,) = await enqueue_made(desk, TENANT, [wish(key)])
        assert after.deduplicated == (form is not DedupeForm.DEBOUNCE)
        assert after.replaced == (before.id if form is DedupeForm.DEBOUNCE else None)
    assert len(await fetch(database, "SELECT id FROM betimes.runs WHERE state < 4")) == 3
    assert len(await fetch(database, "SELECT id FROM betimes.runs")) == 4


async def test_jobs_have_keys_of_their_own(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    new = NewJob(definition=every(3600), dedupe=KEY)
    await enqueue_made(desk, TENANT, [wish()])
    ((job, first),) = await create_made(desk, TENANT, [new])
    ((same, second),) = await create_made(desk, TENANT, [replace(new, name="n")])
    assert (first, second, same.id) == (False, True, job.id)
    await cancel_job(desk, TENANT, job.id)
    with lost_reply(clock):
        ((named, third),) = await create_made(desk, TENANT, [replace(new, name="n")])
    assert (third, named.id != job.id) == (False, True)
    assert (await create_made(desk, TENANT, [new]))[0].job.id == named.id
    await delete_job(desk, TENANT, named.id)
    assert not (await create_made(desk, TENANT, [new]))[0].deduplicated
    rows = await fetch(database, "SELECT state FROM betimes.jobs")
    assert sorted(row["state"] for row in rows) == [JobState.ACTIVE, JobState.CANCELLED]


async def test_a_batch_of_jobs_points_at_the_one_that_is_wrong(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    good = NewJob(definition=every(60))
    over = NewJob(definition=every(60, schedule={"end_at": "2000-01-01T00:00:00Z"}), dedupe=KEY)
    with pytest.raises(Exception, match="future") as refused:
        await create_made(desk, TENANT, [good, replace(good, dedupe=Dedupe(key="x")), over])
    assert getattr(refused.value, "pointer", "").startswith("/items/2/")


async def test_tenants_do_not_share_keys(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    await add_tenant(database)
    (mine,) = await enqueue_made(desk, TENANT, [wish()])
    (theirs,) = await enqueue_made(desk, OTHER, [wish()])
    assert not theirs.deduplicated
    assert mine.id != theirs.id


async def test_a_key_is_forgotten_when_nobody_can_mean_it(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    (active,) = await enqueue_made(desk, TENANT, [wish(Dedupe(key="active"))])
    (over,) = await enqueue_made(desk, TENANT, [wish(Dedupe(key="over"))])
    window = Dedupe(key="window", window=timedelta(hours=1))
    (inside,) = await enqueue_made(desk, TENANT, [wish(window)])
    await create_made(desk, TENANT, [NewJob(definition=every(60), dedupe=KEY, name="n")])
    for run in (over, inside):
        await cancel_run(desk, TENANT, run.id)
    clock.advance(60)
    pruning = Pruning(database)

    async def left() -> set[str]:
        for shard in range(SHARDS):
            await pruning.keys(shard, now=clock.now())  # type: ignore[arg-type]
        return {row["key"] for row in await fetch(database, "SELECT key FROM betimes.dedupe")}

    assert await left() == {"run:active", "run:window", "job:invoice 7"}
    clock.advance(timedelta(hours=1))
    assert await left() == {"run:active", "job:invoice 7"}
    await cancel_run(desk, TENANT, active.id)
    clock.advance(timedelta(hours=1))
    assert await left() == {"job:invoice 7"}


@pytest.mark.parametrize(
    "dedupe",
    [
        Dedupe(key=""),
        Dedupe(key="k" * 256),
        Dedupe(key="a\nb"),
        Dedupe(key="k", form=DedupeForm.THROTTLE),
        Dedupe(key="k", form=DedupeForm.DEBOUNCE),
        Dedupe(key="k", window=timedelta(0)),
        Dedupe(key="k", window=timedelta(days=400)),
    ],
)
async def test_a_key_that_means_nothing_is_refused(
    database: Database, clock: ManualClock, dedupe: Dedupe
) -> None:
    desk = make_desk(database, clock)
    with pytest.raises(Invalid):
        await enqueue_made(desk, TENANT, [wish(dedupe)])
    with pytest.raises(Invalid):
        await create_made(desk, TENANT, [NewJob(definition=every(60), dedupe=dedupe)])


async def test_a_job_cannot_be_debounced(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    key = Dedupe(key="k", window=timedelta(minutes=1), form=DedupeForm.DEBOUNCE)
    with pytest.raises(Invalid, match="debounce"):
        await create_made(desk, TENANT, [NewJob(definition=every(60), dedupe=key)])
