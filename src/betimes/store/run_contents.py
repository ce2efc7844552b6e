"""What runs were given and what came of them, for those who are told all of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from betimes.domain.errors import Invalid
from betimes.domain.ids import TenantId, from_text, shard_of
from betimes.store.ask import many
from betimes.store.audit import EventRow
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("deliveries")


@dataclass(frozen=True, slots=True)
class Content:
    """The payload a run was given, by itself or by its job, its result, and its error as JSON."""

    payload: bytes | None
    result: bytes | None
    error: str | None


async def read_contents(
    connection: Connection, tenant: TenantId, events: Iterable[EventRow]
) -> dict[UUID, Content]:
    """By event; those that are about no run, or about one that is gone, are missing."""
    runs = {one.id: run for one in events if (run := _run_of(one)) is not None}
    if not runs:
        return {}
    wanted = sorted(set(runs.values()))
    rows = await many(
        connection,
        SQL["read_run_contents"],
        tenant=tenant,
        shards=[shard_of(run) for run in wanted],
        ids=wanted,
    )
    found = {row["id"]: Content(row["payload"], row["result"], row["error"]) for row in rows}
    return {event: found[run] for event, run in runs.items() if run in found}


def _run_of(event: EventRow) -> UUID | None:
    text = event.body.get("run_id")
    try:
        return from_text("run", text) if isinstance(text, str) else None
    except Invalid:
        return None
