"""Payloads and results that are sealed where they lie: nothing readable is left in any row."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from betimes.domain.errors import Locked
from betimes.domain.ids import RunId
from betimes.domain.outcome import ErrorFacts, Failed, Succeeded
from betimes.domain.run import NewRun
from betimes.domain.states import RunState
from betimes.ops.apply import Wanted, apply_jobs
from betimes.ops.contents import Contents, is_sealed
from betimes.ops.create import NewJob, create_job
from betimes.ops.dead_letters import get_dead_letter
from betimes.ops.desk import Desk
from betimes.ops.enqueue import enqueue_runs
from betimes.ops.history import get_history
from betimes.ops.manual import Overlap, Wish, run_now
from betimes.ops.read import get_job, get_revisions
from betimes.ops.rotation import reseal_some, rotate_key
from betimes.ops.runs import get_run, replay_run
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.service import Large
from ops_kit import TENANT, every, fetch, make_desk
from worker_kit import Bench, a_worker

CANARY = b'{"canary": "word-that-must-not-be-found"}'
RESULT = b'{"canary": "result-that-must-not-be-found"}'


@pytest.fixture
def sealing(database: Database, clock: ManualClock) -> Desk:
    return make_desk(database, clock, seals=True, entropy=os.urandom)


async def readable(desk: Desk) -> list[str]:
    """Tables in which a canary can be read."""
    found = []
    tables = await fetch(
        desk.database,
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = 'betimes'::regnamespace AND relkind = 'r'",
    )
    for (table,) in tables:
        rows = await fetch(desk.database, f'SELECT * FROM betimes."{table}"')
        if any(
            b"not-be-found" in (v if isinstance(v, bytes) else str(v).encode())
            for row in rows
            for v in row
        ):
            found.append(table)
    return found


@asynccontextmanager
async def a_worker_with_keys(
    desk: Desk, seen: list[Any], instead: Any = None
) -> AsyncIterator[Bench]:
    async def work(context: Context) -> object:
        seen.append(context.payload)
        return Succeeded(RESULT)

    handlers = Handlers().also("work", instead or work)

    async def nothing(*_: object) -> Any:
        raise AssertionError("nothing is large here")

    large = Large(fetch=nothing, keep=nothing, contents=Contents(desk))
    clock: Any = desk.clock
    async with a_worker(desk.database, clock, handlers=handlers, large=large) as bench:
        yield bench


async def test_a_run_is_sealed_from_end_to_end(sealing: Desk) -> None:
    """Given, executed and shown as it was; in the rows nobody can read it."""
    runs = await enqueue_runs(
        sealing, TENANT, [NewRun(handler="work", payload=CANARY), NewRun(handler="work")]
    )
    seen: list[Any] = []
    async with a_worker_with_keys(sealing, seen) as bench:
        await bench.poll_once()
    assert sorted(seen, key=str) == sorted([CANARY, None], key=str)
    view = await get_run(sealing, TENANT, runs[0])
    assert (view.run.payload, view.run.result) == (CANARY, RESULT)
    assert view.run.state is RunState.SUCCEEDED
    assert await readable(sealing) == []
    (row,) = await fetch(
        sealing.database, "SELECT payload, result FROM betimes.runs WHERE id = $1", runs[0]
    )
    assert is_sealed(row["payload"])
    assert is_sealed(row["result"])


async def test_what_failed_attempts_leave_is_sealed(sealing: Desk) -> None:
    """The error, its stack and the evidence of a delivery; the type of the error stays readable."""
    evidence = {"status": 500, "headers": {"x": "not-be-found"}, "body": "not-be-found"}

    async def work(_: Context) -> object:
        error = ErrorFacts("Http500", "not-be-found", "at not-be-found")
        return Failed(error, retryable=False, http=json.dumps(evidence))

    (run,) = await enqueue_runs(sealing, TENANT, [NewRun(handler="work")])
    async with a_worker_with_keys(sealing, [], work) as bench:
        await bench.poll_once()
    assert await readable(sealing) == []
    assert await error_of(sealing, run) == "Http500"
    view, (attempt,) = await get_history(sealing, TENANT, run)
    assert view.run.error is not None
    assert view.run.error["stack"] == "at not-be-found"
    assert attempt.http == evidence
    letter, _ = await get_dead_letter(sealing, TENANT, run)
    assert letter.error["message"] == "not-be-found"


async def test_a_job_is_sealed_with_its_history_and_its_runs(
    sealing: Desk, clock: ManualClock
) -> None:
    """Edits, runs by hand and repetitions copy it without opening it."""
    job = await create_job(
        sealing, TENANT, NewJob(definition=every(60, handler="work", payload=CANARY), name="one")
    )
    changed = every(120, handler="work", payload=CANARY)
    await update_job(sealing, TENANT, job.id, changed)
    own = CANARY.replace(b"word", b"own")
    by_hand = await run_now(sealing, TENANT, job.id, Wish(payload=own, overlap=Overlap.ALLOW))
    plain = await run_now(sealing, TENANT, job.id, Wish(overlap=Overlap.ALLOW))
    again = await replay_run(sealing, TENANT, by_hand)
    seen: list[Any] = []
    async with a_worker_with_keys(sealing, seen) as bench:
        await bench.poll_once()
    assert sorted(seen) == sorted([own, CANARY, own])
    assert (await get_job(sealing, TENANT, job.id)).definition.payload == CANARY
    (revision,) = await get_revisions(sealing, TENANT, job.id)
    assert revision.definition.payload == CANARY
    assert (await get_run(sealing, TENANT, again)).run.payload == own
    assert (await get_run(sealing, TENANT, plain)).run.payload is None
    assert await readable(sealing) == []
    applied = await apply_jobs(
        sealing,
        TENANT,
        [Wanted(new=NewJob(definition=changed, name="one"), anchored=True)],
        tags={},
        prune=False,
        adopt=True,
        actor=None,
    )
    assert [one.id for one in applied.unchanged] == [job.id], "the same payload is no change"


async def test_old_keys_stay_while_rows_need_them_and_go_with_the_tenant(
    sealing: Desk, clock: ManualClock
) -> None:
    """A replaced key opens what it sealed; without its keys nothing opens any more."""
    (old,) = await enqueue_runs(sealing, TENANT, [NewRun(handler="work", payload=CANARY)])
    assert await rotate_key(sealing, TENANT) == 2
    clock.advance(7_200)
    while await reseal_some(sealing, TENANT):
        pass
    (new,) = await enqueue_runs(sealing, TENANT, [NewRun(handler="work", payload=CANARY)])
    for run in (old, new):
        assert (await get_run(sealing, TENANT, run)).run.payload == CANARY
    await fetch(sealing.database, "DELETE FROM betimes.data_keys RETURNING 1")
    with pytest.raises(Locked):
        await get_run(sealing, TENANT, old)


async def test_what_was_sealed_is_read_after_sealing_was_turned_off(sealing: Desk) -> None:
    """And what is written then is as it is; a node without keys hands out nothing unreadable."""
    (run,) = await enqueue_runs(sealing, TENANT, [NewRun(handler="work", payload=CANARY)])
    plain = replace(sealing, seals=False)
    (other,) = await enqueue_runs(plain, TENANT, [NewRun(handler="work", payload=b'{"a":1}')])
    seen: list[Any] = []
    async with a_worker_with_keys(replace(plain, vault=None), seen) as bench:
        await bench.poll_once()
    assert seen == [b'{"a":1}']
    assert await error_of(plain, run) == "PayloadLocked"
    assert (await get_run(plain, TENANT, run)).run.payload == CANARY
    assert (await get_run(plain, TENANT, other)).run.result == RESULT


async def error_of(desk: Desk, run: RunId) -> str:
    (row,) = await fetch(desk.database, "SELECT error FROM betimes.runs WHERE id = $1", run)
    told: str = json.loads(row["error"])["type"]
    return told
