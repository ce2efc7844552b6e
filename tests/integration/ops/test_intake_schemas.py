"""Payloads asked for by SQL are held to what workers declare, as far as SQL can."""

import json
from collections.abc import AsyncIterator

import asyncpg
import pytest

from betimes.ops.desk import Desk
from betimes.ops.schemas import declare
from betimes.ops.schemas import declared as schema
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.testing.real_clock import RealClock
from ops_kit import TENANT, make_desk
from store_kit import opened
from tx_kit import ask, open_shop


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[Database]:
    async with opened(dsn, clock=RealClock()) as database:
        yield database


@pytest.fixture
def desk(store: Database) -> Desk:
    return make_desk(store, RealClock())


@pytest.fixture
async def buyer(dsn: str, store: Database) -> AsyncIterator[asyncpg.Connection]:
    async with open_shop(dsn, store) as shop:
        connection = await asyncpg.connect(shop.dsn)
        yield connection
        await connection.close()


FUNCTION = {
    "$ref": "#/$defs/charge",
    "$defs": {
        "charge": {
            "type": "object",
            "properties": {
                "payment": {"type": "string"},
                "cents": {"type": "integer"},
                "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "kind": {"enum": ["card", "cash"]},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
                "rate": {"type": "number", "maximum": 1},
            },
            "required": ["payment", "cents"],
            "additionalProperties": False,
        },
        "line": {"type": "object", "required": ["sku"], "properties": {"sku": {"const": 1}}},
    },
}
GOOD = {"payment": "p", "cents": 1}


@pytest.mark.parametrize(
    ("payload", "fits"),
    [
        (GOOD, True),
        ({**GOOD, "cents": 1.0}, True),
        ({**GOOD, "cents": 1.5}, False),
        ({**GOOD, "cents": "1"}, False),
        ({"payment": "p"}, False),
        ({**GOOD, "more": 1}, False),
        ({**GOOD, "when": None, "kind": "card", "lines": [{"sku": 1}], "rate": 0.5}, True),
        ({**GOOD, "when": 7}, False),
        ({**GOOD, "kind": "cheque"}, False),
        ({**GOOD, "lines": [{"sku": 1}, {}]}, False),
        ({**GOOD, "lines": [{"sku": 2}]}, False),
        ({**GOOD, "rate": 7}, True),  # a word that only the worker knows
        (None, False),
        ([], False),
    ],
)
async def test_a_payload_is_held_to_what_workers_declare(
    desk: Desk, buyer: asyncpg.Connection, payload: object, *, fits: bool
) -> None:
    async def declared(connection: Connection) -> None:
        await declare(connection, desk, TENANT, {"charge": told})

    told = schema("charge", FUNCTION, pointer="")
    await desk.transact(declared, tenant=TENANT)
    asking = ask(buyer, "charge", None if payload is None else json.dumps(payload))
    if fits:
        await asking
        return
    with pytest.raises(asyncpg.PostgresError, match="does not fit the handler 'charge'") as caught:
        await asking
    assert (caught.value.sqlstate, caught.value.detail) == ("BT422", "/payload")


async def test_what_is_let_through_by_sql_is_never_less_than_the_service_lets_through(
    desk: Desk, buyer: asyncpg.Connection
) -> None:
    """Two releases side by side, payloads by reference, handlers nobody has described."""
    for kind in ("integer", "string"):

        async def declared(connection: Connection, kind: str = kind) -> None:
            await declare(connection, desk, TENANT, {"h": schema("h", {"type": kind}, pointer="")})

        await desk.transact(declared, tenant=TENANT)
    await ask(buyer, "h", '"newest"')
    await ask(buyer, "other", "[]")
    await ask(buyer, "h", None, options='{"payload_ref": "blob_1"}')
    with pytest.raises(asyncpg.PostgresError, match="does not fit"):
        await ask(buyer, "h", "1")
