"""Joining an episode: which one is open, what may go unasked, and whose turn comes when.

Its row is locked by whoever adds to it: that is what makes the turns of late runs one sequence for
the whole cluster, and what makes the number that goes without approval exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, unique
from itertools import count
from uuid import UUID

from betimes.domain.errors import Bug
from betimes.domain.ids import ShardId, TenantId, compose, shard_of_key, to_ms
from betimes.domain.parcel import Hold, Waiting
from betimes.fairness.pace import paced, unapproved
from betimes.store import ask
from betimes.store.ask import execute, maybe
from betimes.store.occurrences import Occurrence
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("catchup")
EPISODE_QUIET = timedelta(minutes=5)
"""What is found later than this after the last find is another episode."""
OF_EPISODE = "catchup"


@unique
class EpisodeState(IntEnum):
    """The life of an episode; the numbers are stored."""

    OPEN = 0
    WAITING = 1
    APPROVED = 2
    DROPPED = 3
    OVER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a tenant may catch up unless its quotas say otherwise."""

    per_second: float
    unapproved: int


@dataclass(slots=True, kw_only=True)
class Episode:
    """An episode we hold: what it has, and when its next late run has its turn."""

    shard: ShardId
    id: UUID
    runs: int
    waiting: bool
    paced_through: datetime
    pace: Pace
    at: datetime

    def admit(self, late: Sequence[Occurrence]) -> tuple[list[Waiting], list[Waiting]]:
        """Late runs that get their turn, and those that wait for approval."""
        most = unapproved(self.runs, len(late), most=self.pace.unapproved, waiting=self.waiting)
        free = [
            _waiting(run, max(turn, run.due_at))
            for run, turn in zip(late[:most], self.turns(most), strict=True)
        ]
        return free, [_waiting(run, max(self.at, run.due_at)) for run in late[most:]]

    def turns(self, count: int) -> list[datetime]:
        """The next turns of the tenant; they follow those that were given out before."""
        start = max(self.at, self.paced_through)
        *turns, end = paced(count + 1, start=start, per_second=self.pace.per_second)
        self.paced_through = end
        return turns

    async def extend(
        self, connection: Connection, late: Sequence[Occurrence], *, held: int, at: datetime
    ) -> None:
        """Write down what has joined."""
        fires = [run.fire_at for run in late if run.fire_at is not None]
        await execute(
            connection,
            SQL["extend_catchup"],
            shard=self.shard,
            id=self.id,
            runs=len(late),
            held=held,
            now=at,
            paced_through=self.paced_through,
            per_second=self.pace.per_second,
            first_fire_at=min(fires),
            last_fire_at=max(fires),
        )


async def join(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    fires: Sequence[datetime],
    *,
    pace: Pace,
    at: datetime,
) -> Episode:
    """The open episode of a tenant, locked; a new one when there is none."""
    for attempt in count():
        row = await maybe(connection, SQL["lock_catchup"], shard=shard, tenant=tenant)
        if row is not None and _is_over(row["state"], row["found_at"], at):
            await execute(connection, SQL["close_catchup"], shard=shard, id=row["id"])
            row = None
        if row is not None:
            # Under the lock: nobody else gives turns meanwhile. Earlier episodes may still drain.
            last = await ask.one(connection, SQL["read_paced_through"], tenant=tenant)
            return Episode(
                shard=shard,
                id=row["id"],
                runs=row["runs"],
                waiting=row["state"] == EpisodeState.WAITING,
                paced_through=last["paced_through"],
                pace=pace,
                at=at,
            )
        await execute(
            connection,
            SQL["insert_catchup"],
            shard=shard,
            # An episode of the same tenant and millisecond may be decided already.
            id=compose(to_ms(at) + attempt, shard, tenant.int),
            tenant=tenant,
            now=at,
            paced_through=at,
            first_fire_at=min(fires),
            last_fire_at=max(fires),
            per_second=pace.per_second,
        )
    raise Bug("counting never ends")


def _is_over(state: int, found_at: datetime, at: datetime) -> bool:
    return state == EpisodeState.OPEN and at - found_at > EPISODE_QUIET


def shard_of_tenant(shards: int, tenant: TenantId) -> ShardId:
    """Where the episodes of a tenant lie."""
    return shard_of_key(shards, OF_EPISODE, str(tenant))


def _waiting(run: Occurrence, turn: datetime) -> Waiting:
    """Late runs that mind each other stand in the line of their job.

    When it is their turn, the referee lets them through once nothing outside of it is under way.
    """
    waiting = run.waiting(turn)
    if not run.overlap:
        return waiting
    return waiting._replace(line=run.job, held=Hold.VERDICT)
