"""What tests of parcels over HTTP share: a worker, work for it, and what it says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from uuid import UUID

from api_kit import Client, Served
from betimes.domain.ids import to_text
from betimes.store.database import Database
from worker_kit import rows

NOBODY = str(UUID(int=7))
RETRY = {"max_attempts": 5, "backoff": "fixed", "initial": 0, "jitter": "none"}


async def worker_of(served: Served, **more: Any) -> tuple[Client, str]:
    client = served.client(await served.key(kind="wk", **more))
    asked = {"name": "w", "handlers": ["noop"], "slots": 1000, "queues": more.get("queues")}
    made = await client("POST", "/v1/workers", {n: v for n, v in asked.items() if v is not None})
    return client, made.json["worker_id"]


async def enqueue(admin: Client, count: int, **more: Any) -> list[str]:
    items = [{"handler": "noop", "retry": RETRY, **more} for _ in range(count)]
    made = await admin("POST", "/v1/runs/batch", {"items": items})
    return [one["id"] for one in made.json["items"]]


async def leased(client: Client, worker: str, most: int = 1000) -> dict[str, Any]:
    got = await client("POST", f"/v1/workers/{worker}/parcels", {"max": most, "wait": 0})
    assert got.status == 200, got.body
    found: dict[str, Any] = got.json
    return found


async def told(client: Client, worker: str, *reports: dict[str, Any]) -> list[dict[str, Any]]:
    done = await client("POST", "/v1/leases/reports", {"parcels": list(reports)})
    assert done.status == 200, done.body
    found: list[dict[str, Any]] = done.json["parcels"]
    return found


def ids(parcel: dict[str, Any]) -> list[str]:
    return [run[0] for run in parcel["runs"]]


def success(parcel: dict[str, Any], runs: list[str] | None = None, **more: Any) -> dict[str, Any]:
    some = {"runs": ids(parcel) if runs is None else runs, **more}
    return {"lease_id": parcel["lease_id"], "succeeded": [some]}


async def state_of(admin: Client, run: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await admin("GET", f"/v1/runs/{text(run)}?view=full")).json
    return shown


def text(run: str) -> str:
    return to_text("run", UUID(run))


async def parcels_left(served: Served) -> int:
    return len(await rows(served.desk.database, "SELECT id FROM betimes.parcels"))


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that transactions send meanwhile."""
    said: list[str] = []
    real = Database.transact

    async def transact(self: Database, work: Any, **how: Any) -> Any:
        async def counted(connection: Any) -> Any:
            connection.add_query_logger(note := lambda record: said.append(record.query))
            try:
                return await work(connection)
            finally:
                connection.remove_query_logger(note)

        return await real(self, counted, **how)

    with patch.object(Database, "transact", transact):
        yield said
