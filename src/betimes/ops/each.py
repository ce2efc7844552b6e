"""Many jobs, each for itself: one that is refused leaves the others alone.

All of them are tried at once, which nearly always succeeds and costs a few statements. Where that
is refused, both halves are tried, down to the one that is to blame: the cost grows with the number
of those, not with that of all.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from betimes.domain.errors import Refused
from betimes.domain.ids import TenantId
from betimes.ops.create import NewJob
from betimes.ops.dedupe import MadeJob, create_made
from betimes.ops.desk import Desk
from betimes.store.savepoint import savepoint


async def create_each(
    desk: Desk, tenant: TenantId, new: Sequence[NewJob]
) -> list[MadeJob | Refused]:
    """What came of each, in the order given."""
    if not new:
        return []
    try:
        async with AsyncExitStack() as stack:
            if desk.connection is not None:
                await stack.enter_async_context(savepoint(desk.connection))
            return list(await create_made(desk, tenant, new))
    except Refused as refused:
        if len(new) == 1:
            return [refused]
    half = len(new) // 2
    return [
        *await create_each(desk, tenant, new[:half]),
        *await create_each(desk, tenant, new[half:]),
    ]
