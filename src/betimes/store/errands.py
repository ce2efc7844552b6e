"""What is due by time in which shard, found by one statement for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from betimes.domain.ids import ShardId
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("errands")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What there may be to do in a shard; whoever does it looks again."""

    shard: ShardId
    resumes: bool
    tells: bool
    deletes: bool
    decided: bool


async def find_errands(
    database: Database, shards: Sequence[ShardId], *, now: datetime | None
) -> list[Errand]:
    """The shards in which there is anything to do."""
    rows = await database.many(SQL["find_errands"], lane=Lane.ENGINE, shards=list(shards), now=now)
    return [Errand(**dict(row)) for row in rows]
