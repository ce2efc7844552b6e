"""Moving workflow runs on: who is due, one turn, and the search for word that was lost."""

from datetime import datetime, timedelta
from uuid import UUID

from betimes.ops.desk import Desk
from betimes.ops.workflow_runs import transact, turn_of
from betimes.store import workflow_runs as rows
from betimes.store import workflow_turns as turns
from betimes.store.pool import Connection


async def advance_workflow(desk: Desk, identifier: UUID) -> bool:
    """Take the turn of a workflow run; whether it was still there to be moved."""

    async def move(inner: Desk, connection: Connection, now: datetime) -> bool:
        run = await rows.lock_workflow_run(connection, identifier)
        if run is None:
            await turns.drop_turns(connection, identifier)
            return False
        causes = await turns.take_turns(connection, identifier, now=now)
        if run.state.is_final or not causes:
            return False
        turn = await turn_of(inner, connection, run, now)
        await turn.absorb(causes)
        turn.keep_time()
        await turn.go()
        return True

    return await transact(desk, None, move)


async def postpone_workflow(desk: Desk, identifier: UUID, *, pause: timedelta) -> None:
    """Look at a workflow run later: its turn could not be taken, and others wait."""

    async def postpone(connection: Connection) -> None:
        now = await desk.now(connection)
        await turns.postpone_turns(connection, identifier, now=now, due_at=now + pause)

    await desk.transact(postpone, tenant=None)


async def due_workflows(desk: Desk, *, most: int) -> list[UUID]:
    """Workflow runs for which there is word."""

    async def find(connection: Connection) -> list[UUID]:
        due = await turns.due_turns(connection, now=desk.clock.stated(), most=most)
        return [one.id for one in due]

    return await desk.transact(find, tenant=None)


async def find_lost_turns(desk: Desk, *, page: int) -> int:
    """Leave word for nodes whose runs are over and whose word was lost; how many there were.

    There must be none: every statement that ends a run leaves its own. A run that its partition has
    taken along counts as over.
    """
    found = 0
    for items in (False, True):
        after: tuple[int, UUID] = (-1, UUID(int=0))
        while True:
            suspects = await _sweep(desk, after, items=items, page=page)
            found += sum(one.is_over for one in suspects)
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
        for one in suspects:
            if one.is_over:
                await turns.add_turn(
                    connection, one.workflow_run, one.tenant, cause=one.run, due_at=now
                )
        return suspects

    return await desk.transact(look, tenant=None)
