"""What was leased and is too heavy to be handed out in one answer."""

from collections.abc import Sequence

from betimes.domain.ids import RunId
from betimes.domain.leased import LeasedParcel
from betimes.store.ask import execute, many
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("surplus")


async def put_back_surplus(
    connection: Connection, parcels: Sequence[LeasedParcel], *, most: int
) -> set[RunId]:
    """Put back what was leased and is more than so many bytes of payloads; which runs those are."""
    runs = [run for parcel in parcels for run in parcel.runs]
    found = await many(
        connection,
        SQL["find_surplus"],
        shards=[parcel.shard for parcel in parcels for _ in parcel.runs],
        ids=runs,
        low=min(runs),
        most=most,
    )
    gone = {row["id"] for row in found}
    split = [parcel for parcel in parcels if not gone.isdisjoint(parcel.runs)]
    if split:
        await execute(
            connection,
            SQL["put_back_surplus"],
            shards=[parcel.shard for parcel in split],
            ids=[parcel.id for parcel in split],
            gone=list(gone),
        )
    return gone
