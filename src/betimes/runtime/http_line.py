"""The worker protocol over HTTP."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from betimes.domain.errors import Conflict, FencedOut, NotFound, Unavailable
from betimes.runtime.line import Grants, Line, OpenLine
from betimes.sdk import errors
from betimes.sdk import operations as table
from betimes.sdk.client import AsyncClient
from betimes.sdk.exchange import Given
from betimes.sdk.operation import Operation
from betimes.sdk.way import Way
from betimes.wire.parcels import LeaseParcels, ParcelReport, ParcelReported, ParcelsReported
from betimes.wire.queues import Blob
from betimes.wire.workers import (
    Heartbeat,
    HeartbeatAnswer,
    LogLine,
    NewWorker,
    Progress,
    Registered,
)

T = TypeVar("T")
SLACK_SECONDS = 10.0
VITAL_SECONDS = 10.0
"""Longest wait for an answer that is not a long poll: a lease lives about this long."""
FETCH_SECONDS = 60.0
RETRY_FOR_SECONDS = 0.0
"""The worker itself decides what is asked again, and when."""
SERVER_FAULT = 500
TOO_MANY = 429


LEASE = replace(table.WORKERS_LEASE_PARCELS, answers={200: Grants})
REFUSED = (errors.ApiError,)


class HttpLine:
    """A line that is a client."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def register(self, worker: NewWorker) -> Registered:
        """Make the worker known."""
        answer: Registered = await self._call(table.WORKERS_REGISTER, {}, worker)
        return answer

    async def lease(self, worker: str, wanted: LeaseParcels) -> Grants:
        """Parcels to do, by a long poll."""
        patience = wanted.wait + SLACK_SECONDS
        answer: Grants = await self._call(LEASE, {"worker": worker}, wanted, timeout=patience)
        return answer

    async def fetch(self, path: str) -> bytes:
        """The payload that lies at a path of the service."""
        given = Given(path={"grant": path.rpartition("/")[2]}, timeout=FETCH_SECONDS)
        try:
            content: bytes = await _mapped(self._client.perform(table.BLOBS_READ_GRANTED, given))
        except errors.ApiError as refusal:
            raise NotFound(str(refusal)) from refusal
        return content

    async def keep(self, content: bytes) -> str | None:
        """Keep a large result as a blob; None if the service does not take it."""
        given = Given(body=content, timeout=FETCH_SECONDS)
        try:
            blob: Blob = await _mapped(self._client.perform(table.BLOBS_CREATE, given))
        except REFUSED:
            return None
        return blob.id

    async def beat(self, worker: str, told: Heartbeat) -> HeartbeatAnswer:
        """A sign of life."""
        answer: HeartbeatAnswer = await self._call(
            table.WORKERS_HEARTBEAT, {"worker": worker}, told
        )
        return answer

    async def report(self, reports: Sequence[ParcelReport]) -> list[ParcelReported]:
        """What became of runs."""
        answer: ParcelsReported = await self._call(table.LEASES_REPORT, {}, {"parcels": reports})
        return answer.parcels

    async def progress(self, lease: str, told: Progress) -> None:
        """How far a run has come."""
        await self._call(table.LEASES_PROGRESS, {"lease": lease}, told)

    async def checkpoint(self, lease: str, data: bytes) -> None:
        """Where its next attempt may begin."""
        body = {"data": msgspec.Raw(data)}
        await self._call(table.LEASES_CHECKPOINT, {"lease": lease}, body)

    async def log(self, lease: str, lines: Sequence[LogLine]) -> None:
        """Lines for its log."""
        await self._call(table.LEASES_LOGS, {"lease": lease}, {"lines": lines})

    async def leave(self, worker: str) -> None:
        """The worker goes."""
        given = Given(path={"worker": worker}, timeout=VITAL_SECONDS)
        await _mapped(self._client.perform(table.WORKERS_LEAVE, given))

    async def _call(
        self,
        operation: Operation,
        path: dict[str, str],
        body: Any,
        *,
        timeout: float = VITAL_SECONDS,  # noqa: ASYNC109 -- handed on, not kept here
    ) -> Any:
        given = Given(path=path, body=body, timeout=timeout)
        return await _mapped(self._client.perform(operation, given))


async def _mapped(call: Awaitable[T]) -> T:
    try:
        return await call
    except errors.Unreachable as fault:
        raise Unavailable(str(fault)) from fault
    except errors.LeaseLost as fault:
        raise FencedOut(str(fault)) from fault
    except errors.NotFound as fault:
        raise NotFound(str(fault)) from fault
    except errors.WorkerDraining as fault:
        raise Conflict(str(fault), code="worker_draining") from fault
    except errors.ApiError as fault:
        if fault.problem.retryable or fault.status >= SERVER_FAULT or fault.status == TOO_MANY:
            raise Unavailable(str(fault)) from fault
        raise


def http_lines(url: str | Way | None, api_key: str | None = None) -> OpenLine:
    """Lines to a server; each is a client of its own."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Line]:
        async with AsyncClient(url, api_key, retry_for=RETRY_FOR_SECONDS) as client:
            yield HttpLine(client)

    return opened
