"""A mistake of ours about one asked run is that run's."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from betimes.ops import intake
from betimes.ops.desk import Desk
from betimes.store.database import Database
from betimes.testing.real_clock import RealClock
from ops_kit import fetch, make_desk
from store_kit import opened
from tx_kit import ask, open_shop, take_all_in


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


async def test_one_that_cannot_be_made_for_a_mistake_of_ours_stops_nobody(
    desk: Desk, buyer: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays where it is, with the reason."""
    asked = [(await ask(buyer, "h", f"{number}", "{}"))[0] for number in range(3)]
    make = intake._make

    async def fails(*given: Any) -> None:
        if any(one.id == asked[1] for one in given[3]):
            raise KeyError("a mistake of ours")
        await make(*given)

    monkeypatch.setattr(intake, "_make", fails)
    taken = await take_all_in(desk)
    assert taken.made == 2
    assert taken.refused == [(asked[1], "KeyError")]
    rows = await fetch(desk.database, "SELECT id, refused FROM betimes.intake")
    assert [(row["id"], row["refused"]) for row in rows] == [(asked[1], "KeyError")]
