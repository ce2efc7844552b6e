"""Operations in the store: rows in, values out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, unique
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import ShardId, TenantId, shard_of
from betimes.store.ask import many, maybe
from betimes.store.database import Database
from betimes.store.jobs import from_json, to_json, to_optional_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("operations")
CLAIM_TRIES = 5
CLAIM_TTL = timedelta(seconds=30)


@unique
class OperationState(IntEnum):
    """The life of an operation; the numbers are stored."""

    PENDING = 0
    RUNNING = 1
    SUCCEEDED = 2
    FAILED = 3
    CANCELLED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Long work: what was asked for, and how far it is."""

    id: UUID
    tenant: TenantId
    kind: str
    created_at: datetime
    due_at: datetime
    expires_at: datetime
    request: Mapping[str, Any] = field(default_factory=dict)
    state: OperationState = OperationState.PENDING
    done: int = 0
    total: int | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)
    cursor: str | None = None
    claim: UUID | None = None
    finished_at: datetime | None = None
    created_by: str | None = None

    @property
    def shard(self) -> ShardId:
        """Its id says where it lives."""
        return shard_of(self.id)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state >= OperationState.SUCCEEDED

    def place(self) -> dict[str, Any]:
        """How statements find it."""
        return {"shard": self.shard, "tenant": self.tenant, "id": self.id}


async def insert_operation(connection: Connection, operation: Operation) -> bool:
    """Keep an operation; False when its id is taken."""
    row = await maybe(
        connection,
        SQL["insert_operation"],
        **operation.place(),
        kind=operation.kind,
        total=operation.total,
        request=to_json(operation.request),
        due_at=operation.due_at,
        now=operation.created_at,
        expires_at=operation.expires_at,
        created_by=operation.created_by,
    )
    return row is not None


async def read_operation(
    connection: Connection, tenant: TenantId, operation: UUID
) -> Operation | None:
    """One operation of a tenant."""
    row = await maybe(
        connection,
        SQL["read_operation"],
        shard=shard_of(operation),
        tenant=tenant,
        id=operation,
    )
    return None if row is None else operation_of(row)


async def list_operations(
    connection: Connection,
    tenant: TenantId,
    *,
    before: UUID,
    states: Sequence[OperationState],
    kinds: Sequence[str],
    most: int,
) -> list[Operation]:
    """A page of operations, newest first."""
    rows = await many(
        connection,
        SQL["list_operations"],
        tenant=tenant,
        before_id=before,
        states=[int(state) for state in states] or None,
        kinds=list(kinds) or None,
        most=most,
    )
    return [operation_of(row) for row in rows]


async def operations_due_in(
    database: Database, *, now: datetime | None, lane: Lane
) -> float | None:
    """Seconds until an operation is due; None when there is nothing to wait for."""
    (row,) = await database.many(SQL["read_operations_ahead"], lane=lane, now=now)
    due_in: float | None = row["due_in"]
    return due_in


async def claim_operation(
    connection: Connection, claim: UUID, *, now: datetime | None
) -> Operation | None:
    """Take what has been due for longest."""
    # A few, in case others take the first ones at the same moment.
    for due in await many(connection, SQL["find_due_operations"], now=now, most=CLAIM_TRIES):
        row = await maybe(
            connection,
            SQL["claim_operation"],
            shard=due["shard"],
            tenant=due["tenant_id"],
            id=due["id"],
            claim=claim,
            ttl=CLAIM_TTL,
            now=now,
        )
        if row is not None:
            return operation_of(row)
    return None


async def advance_operation(
    connection: Connection, operation: Operation, *, was: int, now: datetime | None
) -> bool:
    """Note how far it is; False when it was cancelled, taken over or brought there already."""
    row = await maybe(
        connection,
        SQL["advance_operation"],
        **operation.place(),
        claim=operation.claim,
        done=operation.done,
        cursor=operation.cursor,
        result=to_optional_json(operation.result),
        was=was,
        ttl=CLAIM_TTL,
        now=now,
    )
    return row is not None


async def release_operation(
    connection: Connection, operation: Operation, *, due_at: datetime
) -> None:
    """Let go until it is due again."""
    await maybe(
        connection,
        SQL["release_operation"],
        **operation.place(),
        claim=operation.claim,
        due_at=due_at,
    )


async def settle_operation(
    connection: Connection, operation: Operation, *, now: datetime | None
) -> bool:
    """Write down how it ended; False when it had ended otherwise."""
    row = await maybe(
        connection,
        SQL["settle_operation"],
        **operation.place(),
        claim=operation.claim,
        state=int(operation.state),
        result=to_optional_json(operation.result),
        error=to_optional_json(operation.error),
        now=now,
    )
    return row is not None


async def cancel_operation(
    connection: Connection, operation: Operation, *, now: datetime | None
) -> bool:
    """Stop it; False when it has ended."""
    return (
        await maybe(connection, SQL["cancel_operation"], **operation.place(), now=now) is not None
    )


def operation_of(row: asyncpg.Record) -> Operation:
    """A row as an operation."""
    return Operation(
        id=row["id"],
        tenant=row["tenant_id"],
        kind=row["kind"],
        state=OperationState(row["state"]),
        done=row["done"],
        total=row["total"],
        request=from_json(row["request"]),
        result=from_json(row["result"]),
        error=from_json(row["error"]),
        cursor=row["cursor"],
        claim=row["worked_by"],
        due_at=row["due_at"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        expires_at=row["expires_at"],
        created_by=row["created_by"],
    )
