"""What remote workers report about the runs they hold."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from betimes.domain.errors import FencedOut
from betimes.domain.ids import (
    RunId,
    TenantId,
    shard_of,
)
from betimes.domain.leased import HeldLease
from betimes.ops.desk import Desk
from betimes.ops.sayings import open_lines, open_notes, sealed_lines, sealed_note
from betimes.store import remote as rows
from betimes.store.pool import Connection, Lane
from betimes.store.run_notes import (
    LogLine,
    Note,
    append_logs,
    note_run,
    read_logs,
    read_notes,
)

__all__ = [
    "HeldLease",
    "LogLine",
    "Note",
    "add_logs",
    "extend",
    "note",
    "read_checkpoint",
    "read_log",
]

LOST = "the lease ended; somebody else may hold the run"


async def extend(desk: Desk, tenant: TenantId, lease: HeldLease, *, by: timedelta) -> datetime:
    """Prolong one lease; until when."""

    async def work(connection: Connection) -> datetime:
        held = lease.parcel, lease.fence
        place = lease.shard, *held
        kept = await rows.renew(connection, lease.worker, {place: by}, now=desk.clock.stated())
        if held not in kept or not await rows.holds(connection, lease):
            raise FencedOut(LOST)
        return kept[held]

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)


async def note(desk: Desk, tenant: TenantId, lease: HeldLease, said: Note) -> None:
    """Keep progress or a checkpoint, while the lease is good."""

    async def work(connection: Connection) -> None:
        kept = await sealed_note(desk, connection, tenant, said)
        if not await note_run(connection, tenant, lease, kept, now=desk.clock.now()):
            raise FencedOut(LOST)

    await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)


async def read_checkpoint(desk: Desk, tenant: TenantId, run: RunId) -> bytes | None:
    """What an earlier attempt has kept for the next one."""

    async def work(connection: Connection) -> list[Note]:
        found = await read_notes(connection, shard_of(run), [run])
        return await open_notes(desk, connection, tenant, list(found.values()))

    kept = await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=True, tenant=tenant)
    return kept[0].checkpoint if kept else None


async def add_logs(desk: Desk, tenant: TenantId, lease: HeldLease, lines: Sequence[LogLine]) -> int:
    """Add lines to the log of a run, while the lease is good."""

    async def work(connection: Connection) -> int:
        if not await rows.holds(connection, lease):
            raise FencedOut(LOST)
        kept = await sealed_lines(desk, connection, tenant, lines)
        return await append_logs(connection, tenant, lease, kept)

    return await desk.database.transact(work, lane=Lane.COMPLETE, repeatable=False, tenant=tenant)


async def read_log(
    desk: Desk,
    tenant: TenantId,
    run: RunId,
    *,
    after: int,
    attempt: int | None,
    most: int,
    levels: Sequence[str] = (),
    last: bool = False,
) -> list[LogLine]:
    """A page of a run's log: its first lines after one, or its last."""

    async def work(connection: Connection) -> list[LogLine]:
        lines = await read_logs(
            connection, run, after=after, attempt=attempt, most=most, levels=levels, last=last
        )
        return await open_lines(desk, connection, tenant, lines)

    return await desk.transact(work, tenant=tenant)
