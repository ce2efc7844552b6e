"""Workers with different handlers in one queue: nobody keeps from others what is not for it."""

from datetime import timedelta
from typing import Any

import asyncpg

from api_kit import Client, Served
from betimes.store.pool import Lane


async def a_worker(served: Served, *handlers: str) -> tuple[Client, str]:
    client = served.client(await served.key(kind="wk"))
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": list(handlers)})
    return client, made.json["worker_id"]


async def ask(worker: tuple[Client, str], wait: float = 0) -> list[dict[str, Any]]:
    client, name = worker
    got = await client("POST", f"/v1/workers/{name}/lease", {"max": 10, "wait": wait})
    found: list[dict[str, Any]] = got.json["runs"]
    return found


async def rows(served: Served, statement: str) -> list[asyncpg.Record]:
    async with served.service.desk.database.connection(Lane.ENGINE) as connection:
        return await connection.fetch(statement)


async def test_a_place_with_nothing_for_a_worker_is_left_to_others(
    served: Served, admin: Client
) -> None:
    """It touches what it cannot do once, and not again as soon as it is visible."""
    mine = await a_worker(served, "mine")
    theirs = await a_worker(served, "theirs")
    await admin("POST", "/v1/runs", {"handler": "theirs"})
    assert await ask(mine) == []
    assert await ask(mine, wait=1) == [], "long after it has become visible"
    (one,) = await ask(theirs, wait=5)
    assert one["fence"] == 2, "handed out once in vain"


async def test_what_somebody_can_do_hides_for_a_moment_only(served: Served, admin: Client) -> None:
    """However often it was handed out before: most of that may have been attempts."""
    mine = await a_worker(served, "mine")
    await a_worker(served, "theirs")
    for handler in ("theirs", "nobody's"):
        await admin("POST", "/v1/runs", {"handler": handler})
    await rows(served, "UPDATE betimes.parcels SET fence = 12")
    assert await ask(mine) == []
    hidden = await rows(
        served,
        "SELECT run.handler, parcel.visible_at - now() AS hidden"
        " FROM betimes.parcels AS parcel JOIN betimes.runs AS run ON run.id = ANY (parcel.run_ids)",
    )
    times = {row["handler"]: row["hidden"] for row in hidden}
    assert times["theirs"] < timedelta(seconds=1)
    assert times["nobody's"] > timedelta(seconds=20), "this one would only be in the way"
