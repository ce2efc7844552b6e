"""A row for any table, made from its catalogue entry: for tests that must reach every table."""

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from betimes.store.pool import Connection, Session

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, NULL) AS type
      FROM pg_attribute a
     WHERE a.attrelid = format('betimes.%I', $1::text)::regclass
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT a.atthasdef
     ORDER BY a.attnum
"""
# One value per type that satisfies every CHECK; the exceptions are told by column.
BY_TYPE: dict[str, Any] = {
    "smallint": 1,
    "integer": 1,
    "bigint": 1,
    "real": 1.0,
    "double precision": 1.0,
    "boolean": True,
    "text": "probe",
    "uuid": UUID("019b76da-a800-8000-8000-000000000000"),
    "bytea": b"probe",
    "jsonb": "{}",
    "json": "{}",
    "timestamp with time zone": MOMENT,
    "date": date(2026, 1, 1),
    "interval": MOMENT - MOMENT,
    "cidr": "10.0.0.0/8",
}
BY_COLUMN: dict[str, Any] = {"kind": {"api_keys": "sk", "endpoints": "webhook"}}
# Columns that may be null, but not all of them at once.
BESIDES: dict[str, dict[str, Any]] = {
    "sessions": {"key_id": "probe"},
    "deliveries": {"due_at": MOMENT},
}


def sample(type_name: str) -> Any:
    """A value of a type, as the driver takes it."""
    if type_name.endswith("[]"):
        return [sample(type_name.removesuffix("[]"))]
    return BY_TYPE[type_name]


async def insert_row(
    connection: Session,
    table: str,
    *,
    before: Callable[[Connection], Awaitable[None]] | None = None,
    **given: Any,
) -> None:
    """Insert one row: what is given, and a sample of whatever else must not be null.

    Keys that would collide between tenants are made from the tenant's own number.
    """
    columns = {row["attname"]: row["type"] for row in await connection.fetch(COLUMNS, table)}
    values = {name: _value(table, name, kind) for name, kind in columns.items()}
    values |= BESIDES.get(table, {}) | given
    tenant = given.get("tenant_id")
    if tenant and "id" in columns:
        values["id"] = UUID(int=tenant.int) if columns["id"] == "uuid" else f"key{tenant.int}"
    if tenant and columns.get("digest") == "bytea" and "shard" not in columns:
        values["digest"] = tenant.bytes
    if tenant and "user_code" in columns:
        values["user_code"] = str(tenant)
    if tenant and "shard" in columns:
        values["shard"] = tenant.int % 4
    if before:
        await before(connection)
    names = ", ".join(values)
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    await connection.execute(
        f"INSERT INTO betimes.{table} ({names}) VALUES ({places})", *values.values()
    )


def _value(table: str, column: str, kind: str) -> Any:
    return BY_COLUMN.get(column, {}).get(table, sample(kind))
