"""Payloads and results by reference, through a worker."""

import json
from typing import Any

import pytest

from betimes.domain.errors import NotFound, Unavailable
from betimes.domain.ids import TenantId
from betimes.domain.outcome import Succeeded
from betimes.domain.states import RunState
from betimes.executing.returned import LARGE_BYTES_MAX, RESULT_BYTES_MAX, large_result
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.service import Large
from worker_kit import TENANT, a_worker, enqueue, read_run, settle_down

BIG = b"x" * (RESULT_BYTES_MAX + 1)


class Kept:
    """Somebody else's store."""

    def __init__(self, **blobs: bytes) -> None:
        self.blobs = blobs
        self.fault: Exception | None = None

    async def fetch(self, tenant: TenantId, reference: str) -> bytes:
        assert tenant == TENANT
        if self.fault is not None:
            raise self.fault
        if reference not in self.blobs:
            raise NotFound(f"there is no blob {reference!r}")
        return self.blobs[reference]

    async def keep(self, tenant: TenantId, content: bytes) -> str:
        assert tenant == TENANT
        if self.fault is not None:
            raise self.fault
        self.blobs["blob_kept"] = content
        return "blob_kept"

    @property
    def large(self) -> Large:
        return Large(fetch=self.fetch, keep=self.keep)


async def execute(
    database: Database, clock: ManualClock, kept: Kept, handlers: Handlers, **run: Any
) -> Any:
    """One run, and its row afterwards."""
    (made,) = await enqueue(database, clock.now(), ["work"], **run)
    async with a_worker(database, clock, handlers=handlers, large=kept.large) as bench:
        assert await bench.once() == 1
        while len(bench.parts.executor.running):
            await settle_down()
        await settle_down()
        await bench.parts.reporter.flush()
    return await read_run(database, made)


def with_handler(function: Any) -> Handlers:
    handlers = Handlers()
    handlers.add("work", function)
    return handlers


async def size_of(context: Context) -> Any:
    return {"bytes": len(context.payload or b""), "first": (context.payload or b"")[:1].decode()}


def size_in_thread(context: Context) -> Any:
    return {"bytes": len(context.payload or b""), "first": (context.payload or b"")[:1].decode()}


@pytest.mark.parametrize("handler", [size_of, size_in_thread])
async def test_a_reference_is_followed_before_the_handler_is_called(
    database: Database, clock: ManualClock, handler: Any
) -> None:
    """Wherever the handler runs; a payload of the run's own wins."""
    kept = Kept(blob_a=BIG)
    options = {"payload_ref": "blob_a"}
    row = await execute(database, clock, kept, with_handler(handler), options=options)
    assert json.loads(row["result"]) == {"bytes": len(BIG), "first": "x"}
    row = await execute(
        database, clock, kept, with_handler(handler), options=options, payload=b"own"
    )
    assert json.loads(row["result"]) == {"bytes": 3, "first": "o"}


async def test_a_reference_to_nothing_is_final_and_one_out_of_reach_is_not(
    database: Database, clock: ManualClock
) -> None:
    kept = Kept()
    options = {"payload_ref": "blob_gone"}
    row = await execute(database, clock, kept, with_handler(size_of), options=options)
    assert (row["state"], json.loads(row["error"])["type"]) == (RunState.DEAD, "PayloadMissing")
    kept.fault = Unavailable("away")
    row = await execute(database, clock, kept, with_handler(size_of), options=options)
    assert (row["state"], json.loads(row["error"])["type"]) == (RunState.RETRY_WAIT, "Unavailable")


async def at_once(_: Context) -> Any:
    return BIG


async def as_outcome(_: Context) -> Any:
    await settle_down()
    return Succeeded(BIG)


async def as_json(_: Context) -> Any:
    return {"text": BIG.decode()}


@pytest.mark.parametrize("handler", [at_once, as_outcome, as_json])
async def test_a_result_over_the_limit_is_kept_by_reference(
    database: Database, clock: ManualClock, handler: Any
) -> None:
    """Whether the handler has waited for something or not."""
    kept = Kept()
    row = await execute(database, clock, kept, with_handler(handler))
    assert row["state"] == RunState.SUCCEEDED
    content = kept.blobs["blob_kept"]
    assert json.loads(row["result"]) == {"result_ref": "blob_kept", "bytes": len(content)}
    assert BIG in content


async def test_a_result_that_cannot_be_kept_fails_the_attempt(
    database: Database, clock: ManualClock
) -> None:
    """Rather than being lost in silence."""
    kept = Kept()
    kept.fault = Unavailable("away")
    row = await execute(database, clock, kept, with_handler(at_once))
    assert row["state"] == RunState.RETRY_WAIT


def test_what_is_large() -> None:
    assert large_result(BIG) == large_result(Succeeded(BIG)) == BIG
    for small in (None, b"", BIG[:-1], {"a": 1}, Succeeded(None), object()):
        assert large_result(small) is None
    assert large_result(bytes(LARGE_BYTES_MAX + 1)) is None
