"""Moving workflow runs on: who is due, one turn, and the search for word that was lost."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import transact, turn_of
from betimes.ops.workflow_step import STEP_RUNS_MAX, Room
from betimes.store import workflow_runs as rows
from betimes.store import workflow_turns as turns
from betimes.store.pool import Connection
from betimes.store.workflow_turns import Ahead

LOOKS_MAX = 8
"""How often the search for due workflow runs looks past those it has found."""


class DueWorkflows(NamedTuple):
    """Workflow runs for which there is word; where there are none, what is to be expected."""

    ids: list[UUID]
    ahead: Ahead | None = None


async def advance_workflow(desk: Desk, identifier: UUID, *, most: int = STEP_RUNS_MAX) -> bool:
    """Take one step of a workflow run, of at most so many runs; whether it was moved.

    A step that runs out of time is not repeated at once: whoever asked puts it off, and others have
    their turn. One that somebody else holds is moved by them.
    """

    async def move(inner: Desk, connection: Connection, now: datetime) -> bool:
        run = await rows.claim_workflow_run(connection, identifier)
        if run is None:
            if await rows.read_workflow_run(connection, identifier) is None:
                await turns.drop_turns(connection, identifier)
            return False
        if run.state.is_final:
            await turns.drop_turns(connection, identifier)
            return False
        causes = await turns.take_turns(connection, identifier, now=now, most=most)
        if not causes:
            return False
        turn = await turn_of(inner, connection, run, now, room=Room(runs=most))
        await turn.absorb(causes)
        turn.keep_time()
        await turn.go()
        return True

    return await transact(desk, None, move, patient=False)


async def postpone_workflow(desk: Desk, identifier: UUID, *, pause: timedelta) -> None:
    """Look at a workflow run later: its turn could not be taken, and others wait."""

    async def postpone(connection: Connection) -> None:
        now = await desk.now(connection)
        await turns.postpone_turns(connection, identifier, now=now, due_at=now + pause)

    await desk.transact(postpone, tenant=None)


async def due_workflows(
    desk: Desk, *, most: int, but: Collection[UUID] = (), ahead: bool = False
) -> DueWorkflows:
    """Workflow runs for which there is word, but for some that are seen to otherwise.

    One with ten thousand words does not hide the others behind it: it is looked past. Where nothing
    is due, `ahead` asks what is to be expected.
    """

    async def find(connection: Connection) -> DueWorkflows:
        found: list[UUID] = []
        for _ in range(LOOKS_MAX):
            due = await turns.due_turns(
                connection, now=desk.clock.stated(), most=most, but=[*but, *found]
            )
            found += [one.id for one in due.runs]
            if due.is_all or len(found) >= most:
                break
        if ahead and not found:
            return DueWorkflows([], await turns.turns_ahead(connection, now=desk.clock.stated()))
        return DueWorkflows(found[:most])

    return await desk.transact(find, tenant=None)


async def find_lost_turns(desk: Desk, *, page: int) -> int:
    """Leave word for nodes whose runs are over and whose word was lost; how many there were.

    There must be none: every statement that ends a run leaves its own. Word that still waits to be
    taken is not lost, however long it waits. A run that its partition has taken along counts as
    over.
    """
    found = 0
    for items in (False, True):
        after: tuple[int, UUID] = (-1, UUID(int=0))
        while True:
            suspects = await _sweep(desk, after, items=items, page=page)
            found += sum(one.is_lost for one in suspects)
            if len(suspects) < page:
                break
            after = (suspects[-1].shard, suspects[-1].run)
    return found


async def _sweep(
    desk: Desk, after: tuple[int, UUID], *, items: bool, page: int
) -> list[turns.Suspect]:
    async def look(connection: Connection) -> list[turns.Suspect]:
        suspects = await turns.suspects(connection, items=items, after=after, most=page)
        now = await desk.now(connection)
        await turns.add_turns(connection, [one for one in suspects if one.is_lost], due_at=now)
        return suspects

    return await desk.transact(look, tenant=None)
