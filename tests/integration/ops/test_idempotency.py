"""One key, one effect, one answer: also when requests meet, and also at midnight."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from betimes.domain.errors import AlreadyExists, Conflict, IdempotencyMismatch, Invalid
from betimes.domain.ids import RunId, TenantId
from betimes.domain.run import NewRun
from betimes.ops import NewJob, create_job, enqueue_run, enqueue_runs
from betimes.ops.desk import Desk
from betimes.ops.idempotency import (
    IdempotencyKey,
    Once,
    fingerprint_of,
    once,
    shard_of_idempotency,
)
from betimes.store.database import Database
from betimes.store.idempotency import Answer
from betimes.testing import ManualClock
from ops_kit import OTHER, TENANT, KeptHints, add_tenant, every, fetch, make_desk
from store_kit import IMPATIENT, opened

MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)
KEY = IdempotencyKey(key="k", fingerprint=fingerprint_of("POST", "/v1/runs", b"{}"))


async def enqueue_once(
    desk: Desk, key: IdempotencyKey = KEY, tenant: TenantId = TENANT
) -> Once[RunId]:
    async def verb(inside: Desk) -> RunId:
        shard = shard_of_idempotency(inside, tenant, key.key)
        return (await enqueue_runs(inside, tenant, [NewRun(handler="a")], shard=shard))[0]

    return await once(
        desk, tenant, key, verb, lambda run: Answer(status=202, body=run.bytes, headers={"a": "b"})
    )


async def runs(database: Database) -> list[RunId]:
    return [row["id"] for row in await fetch(database, "SELECT id FROM betimes.runs")]


async def test_a_repeated_request_gets_the_first_answer(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    first = await enqueue_once(desk)
    clock.advance(timedelta(hours=23, minutes=59))
    again = await enqueue_once(desk)
    assert (first.replayed, again.replayed) == (False, True)
    assert first.answer == again.answer
    assert first.value is not None
    assert await runs(database) == [first.value]
    assert isinstance(desk.hints, KeptHints)
    assert len(desk.hints.hints) == 1


async def test_a_key_is_free_again_after_its_time(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    await enqueue_once(desk)
    clock.advance(timedelta(hours=24, seconds=1))
    assert not (await enqueue_once(desk)).replayed
    assert len(await runs(database)) == 2


async def test_another_request_with_the_same_key_is_refused_without_effect(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    await enqueue_once(desk)
    other = IdempotencyKey(key="k", fingerprint=fingerprint_of("POST", "/v1/runs", b"{1}"))
    with pytest.raises(IdempotencyMismatch):
        await enqueue_once(desk, other)
    assert len(await runs(database)) == 1


async def test_tenants_have_keys_of_their_own(database: Database, clock: ManualClock) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    assert not (await enqueue_once(desk)).replayed
    assert not (await enqueue_once(desk, tenant=OTHER)).replayed


async def test_what_is_refused_leaves_the_key_free(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    new = NewJob(definition=every(60), name="taken")
    await create_job(desk, TENANT, new)

    with pytest.raises(AlreadyExists):
        await once(
            desk,
            TENANT,
            KEY,
            lambda inside: create_job(inside, TENANT, new),
            lambda _: Answer(status=201),
        )
    assert not (await enqueue_once(desk)).replayed


async def test_of_requests_that_meet_one_does_it(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    answers = await asyncio.gather(*(enqueue_once(desk) for _ in range(5)))
    assert sorted(one.replayed for one in answers) == [False] + [True] * 4
    assert len({one.answer.body for one in answers}) == 1
    assert len(await runs(database)) == 1


@pytest.mark.parametrize("seconds_after", [0.0, 1.0, 9.0, 11.0])
async def test_a_key_of_yesterday_is_known_today(
    database: Database, clock: ManualClock, seconds_after: float
) -> None:
    desk = make_desk(database, clock)
    clock.advance(MIDNIGHT - clock.now() - timedelta(seconds=1))
    await enqueue_once(desk)
    clock.advance(1 + seconds_after)
    assert (await enqueue_once(desk)).replayed


async def test_a_request_that_lasts_over_midnight_is_met_on_both_days(
    dsn: str, clock: ManualClock
) -> None:
    """The one from before midnight has not committed; the one after it must not slip past."""
    clock.advance(MIDNIGHT - clock.now() - timedelta(seconds=0.5))
    async with opened(dsn, clock=clock, **IMPATIENT) as database:
        desk = make_desk(database, clock)
        entered, leave = asyncio.Event(), asyncio.Event()

        async def slow(inside: Desk) -> RunId:
            run = await enqueue_run(inside, TENANT, NewRun(handler="a"))
            entered.set()
            await leave.wait()
            return run

        async with asyncio.TaskGroup() as group:
            first = group.create_task(
                once(desk, TENANT, KEY, slow, lambda run: Answer(status=202, body=run.bytes))
            )
            await entered.wait()
            clock.advance(2)
            with pytest.raises(Conflict) as caught:
                await enqueue_once(desk)
            assert caught.value.code == "idempotency_in_progress"
            leave.set()
        assert (await enqueue_once(desk)).answer == first.result().answer
        assert len(await runs(database)) == 1


async def test_both_days_hold_the_key_just_after_midnight_only(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    clock.advance(MIDNIGHT - clock.now() + timedelta(seconds=9))
    await enqueue_once(desk)
    clock.advance(2)
    await enqueue_once(desk, IdempotencyKey(key="later", fingerprint=b"x"))
    rows = await fetch(database, "SELECT key, count(*) AS n FROM betimes.idempotency GROUP BY 1")
    assert {row["key"]: row["n"] for row in rows} == {"k": 2, "later": 1}


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb"])
def test_a_key_is_a_line_of_text(key: str) -> None:
    with pytest.raises(Invalid) as caught:
        IdempotencyKey(key=key, fingerprint=b"")
    assert caught.value.code == "idempotency_key_invalid"


def test_parts_of_a_fingerprint_do_not_run_together() -> None:
    assert fingerprint_of("ab", "c") != fingerprint_of("a", "bc")
