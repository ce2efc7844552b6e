"""Business keys in the store: taken, looked at, handed on, forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.errors import Conflict
from betimes.domain.ids import ShardId, TenantId, shard_of
from betimes.domain.states import JobState, RunState
from betimes.store.ahead import find_unended
from betimes.store.ask import execute, many, maybe
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("dedupe")
NOBODY = UUID(int=0)
TRIES = 3
LOOK_AGAIN_AFTER = timedelta(minutes=10)


class Key(NamedTuple):
    """A key as it is stored; the text says whether a run or a job has it."""

    shard: ShardId
    text: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Who has a key, since when, and until when its window lasts."""

    holder: UUID
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a holder; one that is not there any more has none."""

    active: bool
    started: bool


async def take_keys(
    connection: Connection, tenant: TenantId, keys: Sequence[Key], *, now: datetime
) -> dict[Key, Taken]:
    """Take every key; returns those that somebody had before. All are ours until we have ended."""
    wanted, found = sorted(set(keys)), dict[Key, Taken]()
    for _ in range(TRIES):
        given = {"shards": [key.shard for key in wanted], "keys": [key.text for key in wanted]}
        rows = await many(
            connection, SQL["take_keys"], tenant=tenant, now=now, nobody=NOBODY, **given
        )
        fresh = {row["key"] for row in rows}
        wanted = [key for key in wanted if key.text not in fresh]
        if not wanted:
            return found
        given = {"shards": [key.shard for key in wanted], "keys": [key.text for key in wanted]}
        rows = await many(connection, SQL["lock_keys"], tenant=tenant, **given)
        held = {
            row["key"]: Taken(row["holder"], row["created_at"], row["expires_at"]) for row in rows
        }
        found |= {key: held[key.text] for key in wanted if key.text in held}
        # Whatever is missing was forgotten between the two looks: take it.
        wanted = [key for key in wanted if key.text not in held]
        if not wanted:
            return found
    raise Conflict("a dedupe key was taken and forgotten again and again; ask once more")


async def holder_of(connection: Connection, tenant: TenantId, key: Key) -> UUID | None:
    """Who has a key; None when nobody has it."""
    row = await maybe(connection, SQL["read_holder"], shard=key.shard, tenant=tenant, key=key.text)
    return None if row is None else row["holder"]


async def hand_keys(
    connection: Connection,
    tenant: TenantId,
    handed: Mapping[Key, tuple[UUID, datetime]],
    *,
    now: datetime,
) -> None:
    """Write down who has which key from now on, and until when."""
    if not handed:
        return
    await execute(
        connection,
        SQL["hand_keys"],
        tenant=tenant,
        now=now,
        shards=[key.shard for key in handed],
        keys=[key.text for key in handed],
        holders=[holder for holder, _ in handed.values()],
        expires=[expires_at for _, expires_at in handed.values()],
    )


async def runs_standing(connection: Connection, runs: Sequence[UUID]) -> dict[UUID, Standing]:
    """What became of runs, as far as their rows know: that one is leased, its parcel knows."""
    if not runs:
        return {}
    rows = await many(connection, SQL["read_holding_runs"], **_places(runs))
    return {
        row["id"]: Standing(
            active=row["state"] < RunState.SUCCEEDED,
            started=row["attempt"] > 0 or row["state"] == RunState.RETRY_WAIT,
        )
        for row in rows
    }


async def jobs_standing(connection: Connection, jobs: Sequence[UUID]) -> dict[UUID, Standing]:
    """What became of jobs: a paused one is active, one that has no fire left is not."""
    if not jobs:
        return {}
    rows = await many(connection, SQL["read_holding_jobs"], **_places(jobs))
    complete = [row["id"] for row in rows if row["state"] == JobState.COMPLETED]
    active = {row["id"] for row in rows if row["state"] < JobState.COMPLETED}
    active |= await find_unended(connection, complete)
    return {row["id"]: Standing(active=row["id"] in active, started=False) for row in rows}


async def forget_keys(
    connection: Connection, shard: ShardId, *, now: datetime, most: int
) -> tuple[int, int]:
    """Delete keys whose window is over and whose holder is not active; how many, and of how many.

    The others are looked at again later.
    """
    rows = await many(connection, SQL["lock_aged_keys"], shard=shard, now=now, most=most)
    if not rows:
        return 0, 0
    holders = [row["holder"] for row in rows]
    found = await many(connection, SQL["find_active_holders"], **_places(holders))
    active = {row["id"] for row in found}
    for query, wanted, more in (
        ("postpone_keys", True, {"until": now + LOOK_AGAIN_AFTER}),
        ("delete_keys", False, {}),
    ):
        chosen = [row for row in rows if (row["holder"] in active) is wanted]
        if chosen:
            await execute(
                connection,
                SQL[query],
                shard=shard,
                tenants=[row["tenant_id"] for row in chosen],
                keys=[row["key"] for row in chosen],
                **more,
            )
    return sum(row["holder"] not in active for row in rows), len(rows)


def _places(ids: Sequence[UUID]) -> dict[str, list[Any]]:
    return {"shards": [shard_of(one) for one in ids], "ids": list(ids)}
