"""Dead letters: listed, grouped, redriven at a rate, discarded; never twice in the queue."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from betimes.domain.errors import IllegalTransition, Invalid, NotFound
from betimes.domain.ids import RunId, shard_of
from betimes.domain.run import NewRun
from betimes.domain.states import RunState, Shown
from betimes.ops import enqueue_runs
from betimes.ops.dead_letters import (
    annotate_dead_letter,
    discard,
    get_dead_letter,
    list_dead_groups,
    list_dead_letters,
    redrive,
    redrive_matching,
    redrive_one,
)
from betimes.ops.desk import Desk
from betimes.ops.runs import get_run
from betimes.store.database import Database
from betimes.store.dead_letters import LetterFilter, LetterState
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import (
    OTHER,
    SECOND,
    TENANT,
    add_tenant,
    fetch,
    lost_reply,
    make_desk,
    parcelled,
    run_row,
)


async def die(database: Database, desk: Desk, runs: Sequence[RunId], cause: str = "x") -> None:
    """As a worker writes it; the parcel stays, as if another run of it were still under way."""
    async with database.connection(Lane.ENGINE) as connection:
        for place, run in enumerate(runs):
            at = desk.clock.now() + place * SECOND
            await connection.execute(
                "UPDATE betimes.runs SET state = 5, finished_at = $3, attempt = 5, fence = 7"
                " WHERE shard = $1 AND id = $2",
                shard_of(run),
                run,
                at,
            )
            await connection.execute(
                "INSERT INTO betimes.dead_letters (shard, run_id, tenant_id, dead_at, attempts,"
                " queue, handler, fingerprint, reason, error)"
                " VALUES ($1, $2, $3, $4, 5, 'default', 'a', $5, 'DEAD', '{\"n\": 1}')",
                shard_of(run),
                run,
                TENANT,
                at,
                cause,
            )


async def dead(database: Database, desk: Desk, count: int, cause: str = "x") -> list[RunId]:
    runs = await enqueue_runs(desk, TENANT, [NewRun(handler="a")] * count)
    await die(database, desk, runs, cause)
    return runs


async def test_letters_are_listed_page_by_page_and_grouped(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    first, second = await dead(database, desk, 3, "a"), await dead(database, desk, 2, "b")
    page = await list_dead_letters(desk, TENANT, limit=2)
    seen = list(page.letters)
    while page.next is not None:
        page = await list_dead_letters(desk, TENANT, after=page.next, limit=2)
        seen += page.letters
    assert sorted(letter.run for letter in seen) == sorted(first + second)
    assert [letter.dead_at for letter in seen] == sorted(letter.dead_at for letter in seen)
    groups = await list_dead_groups(desk, TENANT)
    assert [(group.fingerprint, group.count) for group in groups] == [("a", 3), ("b", 2)]
    assert groups[0].sample == {"n": 1}
    assert groups[0].last_at - groups[0].first_at == 2 * SECOND


async def test_a_letter_is_redriven_once(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    (run,) = await dead(database, desk, 1)
    await redrive_one(desk, TENANT, run)
    row = await run_row(database, run)
    assert row is not None
    assert (row["state"], row["attempt"], row["finished_at"]) == (RunState.QUEUED, 0, None)
    assert await parcelled(database) == [run]
    with pytest.raises(IllegalTransition, match="got one that is redriven"):
        await redrive_one(desk, TENANT, run)
    await line.lease()
    assert line.held[0].fence == 8, "whoever held it before is refused"
    await line.finish()
    assert (await get_run(desk, TENANT, run)).state is Shown.SUCCEEDED
    letter, attempts = await get_dead_letter(desk, TENANT, run)
    assert (letter.state, attempts) == (LetterState.REDRIVEN, [])


async def test_many_are_redriven_at_a_rate(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    runs = await dead(database, desk, 4, "a") + await dead(database, desk, 2, "b")
    done = await redrive_matching(
        desk, TENANT, LetterFilter(fingerprint="a"), rate_per_second=2, reset_attempts=False
    )
    assert done == runs[:4]
    rows = await fetch(
        database, "SELECT visible_at FROM betimes.parcels WHERE lane = 1 ORDER BY visible_at"
    )
    assert [row["visible_at"] - clock.now() for row in rows] == [
        timedelta(seconds=place / 2) for place in range(4)
    ]
    assert len(await parcelled(database)) == len(set(await parcelled(database))) == 6
    assert await redrive(desk, TENANT, runs[:4]) == []
    kept = await run_row(database, runs[0])
    assert kept is not None
    assert kept["attempt"] == 5


async def test_a_lost_reply_does_not_change_the_answer(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    runs = await dead(database, desk, 3)
    with lost_reply(clock):
        assert await redrive(desk, TENANT, runs[:2]) == runs[:2]
    assert sorted(await parcelled(database)) == sorted(runs)
    with lost_reply(clock):
        assert await discard(desk, TENANT, runs[2:]) == runs[2:]


async def test_a_discarded_letter_stays_dead(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    runs = await dead(database, desk, 2)
    assert await discard(desk, TENANT, runs[:1], reason="known") == runs[:1]
    assert await discard(desk, TENANT, runs[:1]) == []
    page = await list_dead_letters(desk, TENANT)
    assert [letter.run for letter in page.letters] == runs[1:]
    letter = await annotate_dead_letter(desk, TENANT, runs[0], assignee="ada")
    assert (letter.note, letter.assignee, letter.state) == ("known", "ada", LetterState.DISCARDED)


async def test_foreign_letters_are_neither_seen_nor_moved(
    database: Database, clock: ManualClock
) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    runs = await dead(database, desk, 1)
    assert (await list_dead_letters(desk, OTHER)).letters == []
    assert await redrive(desk, OTHER, runs) == []
    assert await discard(desk, OTHER, runs) == []
    with pytest.raises(NotFound):
        await redrive_one(desk, OTHER, runs[0])
    with pytest.raises(NotFound):
        await annotate_dead_letter(desk, OTHER, runs[0], note="x")


async def test_a_rate_that_makes_no_progress_is_refused(
    database: Database, clock: ManualClock
) -> None:
    with pytest.raises(Invalid, match="expected a rate above 0"):
        await redrive(make_desk(database, clock), TENANT, [], rate_per_second=0)
