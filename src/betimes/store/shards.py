"""Shard leases: who owns which slice, under which epoch, up to where its work is done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.domain.errors import FencedOut
from betimes.domain.ids import Epoch, NodeId, ShardId
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("shards")


@dataclass(frozen=True, slots=True)
class ShardSeen:
    """A shard as everybody sees it; `expired` is true as well when nobody owns it."""

    shard: ShardId
    owner: NodeId | None
    epoch: Epoch
    expired: bool
    ends_in: float | None = None
    """Seconds until the lease ends unless it is renewed, by the database clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A shard that was just given to us, and where its previous owner stopped."""

    shard: ShardId
    epoch: Epoch
    published_through: datetime | None
    swept_through: datetime | None
    tzdata: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """What a holder repeats with every write."""

    shard: ShardId
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """What is still ours, what of it was prolonged, and the database's time if there was any."""

    ours: set[ShardId]
    renewed: set[ShardId]
    now: datetime | None


@dataclass(frozen=True, slots=True)
class Shards:
    """The table of shards, as seen by one node."""

    database: Database
    node: NodeId

    async def count(self) -> int:
        """How many shards this cell was made with."""
        rows = await self.database.many(SQL["count_shards"], lane=Lane.ENGINE)
        return int(rows[0]["shards"])

    async def read(self, *, now: datetime | None) -> tuple[list[ShardSeen], datetime]:
        """Every shard, and the database's time."""
        rows = await self.database.many(SQL["read_shards"], lane=Lane.LEASE, now=now)
        seen = [
            ShardSeen(
                ShardId(row["shard"]),
                None if row["owner"] is None else NodeId(row["owner"]),
                Epoch(row["epoch"]),
                row["expired"],
                row["ends_in"],
            )
            for row in rows
        ]
        return seen, rows[0]["now"]

    async def acquire(
        self, shards: Sequence[ShardId], *, ttl: timedelta, now: datetime | None
    ) -> list[Grant]:
        """Take those of some shards that are free or expired; where somebody was faster, none."""
        rows = await self.database.many(
            SQL["acquire_shards"],
            lane=Lane.LEASE,
            shards=sorted(shards),
            node=self.node,
            ttl=ttl,
            now=now,
        )
        return [
            Grant(
                shard=ShardId(row["shard"]),
                epoch=Epoch(row["epoch"]),
                published_through=row["published_through"],
                swept_through=row["swept_through"],
                tzdata=row["tzdata"],
                now=row["now"],
            )
            for row in rows
        ]

    async def renew(
        self,
        held: Iterable[tuple[Claim, datetime | None]],
        *,
        ttl: timedelta,
        now: datetime | None,
    ) -> "Renewed":
        """Prolong what we hold and move idle cursors; waits for nobody who writes for a shard."""
        pairs = sorted(held, key=lambda pair: pair[0].shard)  # locked in the order of all others
        rows = await self.database.many(
            SQL["renew_shards"],
            lane=Lane.LEASE,
            shards=[claim.shard for claim, _ in pairs],
            epochs=[claim.epoch for claim, _ in pairs],
            published=[through for _, through in pairs],
            node=self.node,
            ttl=ttl,
            now=now,
        )
        return Renewed(
            ours={ShardId(row["shard"]) for row in rows},
            renewed={ShardId(row["shard"]) for row in rows if row["renewed"]},
            now=rows[0]["now"] if rows else None,
        )

    async def release(self, claims: Iterable[Claim]) -> set[ShardId]:
        """Give shards back at once."""
        listed = list(claims)
        rows = await self.database.many(
            SQL["release_shards"],
            lane=Lane.LEASE,
            shards=[claim.shard for claim in listed],
            epochs=[claim.epoch for claim in listed],
            node=self.node,
        )
        return {ShardId(row["shard"]) for row in rows}

    async def record_tzdata(self, claims: Iterable[Claim], tzdata: str) -> set[ShardId]:
        """Remember with which zone rules fires were computed; the shards that are still ours."""
        listed = sorted(claims, key=lambda claim: claim.shard)
        rows = await self.database.many(
            SQL["record_tzdata"],
            lane=Lane.ENGINE,
            shards=[claim.shard for claim in listed],
            epochs=[claim.epoch for claim in listed],
            node=self.node,
            tzdata=tzdata,
        )
        return {ShardId(row["shard"]) for row in rows}

    async def move_swept(
        self, claims: Iterable[Claim], through: datetime
    ) -> dict[ShardId, datetime | None]:
        """Say how far the sweeper has looked, without finding anything; what came of it."""
        listed = list(claims)
        rows = await self.database.many(
            SQL["move_swept_together"],
            lane=Lane.ENGINE,
            shards=[claim.shard for claim in listed],
            epochs=[claim.epoch for claim in listed],
            node=self.node,
            through=through,
        )
        return {ShardId(row["shard"]): row["swept_through"] for row in rows}


@dataclass(frozen=True, slots=True)
class HeldShard:
    """A shard that is ours until the transaction ends."""

    now: datetime
    published_through: datetime | None


async def hold(
    connection: Connection, claim: Claim, *, node: NodeId, now: datetime | None
) -> datetime:
    """Prove inside a transaction that we still own a shard; returns the database's time.

    Raises:
        FencedOut: the shard has another owner.

    """
    return (await hold_shard(connection, claim, node=node, now=now)).now


async def take(
    connection: Connection, claim: Claim, *, node: NodeId, now: datetime | None
) -> HeldShard:
    """Prove the same, and keep everybody away who makes parcels in the shard.

    Raises:
        FencedOut: the shard has another owner.

    """
    rows = await SQL["take_shard"].fetch(
        connection, shard=claim.shard, node=node, epoch=claim.epoch, now=now
    )
    if not rows:
        raise FencedOut(f"shard {claim.shard} has another owner")
    return HeldShard(rows[0]["now"], rows[0]["published_through"])


async def hold_shard(
    connection: Connection, claim: Claim, *, node: NodeId, now: datetime | None
) -> HeldShard:
    """The same, with how far it is published.

    Raises:
        FencedOut: the shard has another owner.

    """
    rows = await SQL["hold_shard"].fetch(
        connection, shard=claim.shard, node=node, epoch=claim.epoch, now=now
    )
    if not rows:
        raise FencedOut(f"shard {claim.shard} has another owner")
    return HeldShard(rows[0]["now"], rows[0]["published_through"])
