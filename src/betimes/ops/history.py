"""What happened to a run: its attempts."""

from betimes.domain.ids import RunId, TenantId
from betimes.ops.desk import Desk
from betimes.ops.runs import RunView, get_run
from betimes.store.dead_letters import Attempt, read_attempts
from betimes.store.pool import Connection

__all__ = ["Attempt", "get_history"]


async def get_history(desk: Desk, tenant: TenantId, run: RunId) -> tuple[RunView, list[Attempt]]:
    """A run and the attempts of it that did not succeed."""

    async def work(connection: Connection) -> tuple[RunView, list[Attempt]]:
        inner = desk.inside(connection, desk.hints)
        view = await get_run(inner, tenant, run)
        return view, await read_attempts(connection, run)

    return await desk.transact(work, tenant=tenant)
