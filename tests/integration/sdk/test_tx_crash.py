"""Killed before its commit, an order leaves no run; killed after it, the run is made."""

import asyncio
import sys
from pathlib import Path

import pytest

from betimes.testing.real_clock import RealClock
from ops_kit import make_desk
from store_kit import eventually, opened, owner
from tx_kit import open_shop, take_all_in

BUYER = Path(__file__).parents[2] / "tx_buyer.py"


@pytest.mark.parametrize("library", ["psycopg", "asyncpg"])
@pytest.mark.parametrize("ending", ["commit", "hang"])
async def test_kill_9(dsn: str, ending: str, library: str) -> None:
    async with opened(dsn, clock=RealClock()) as store, open_shop(dsn, store) as shop:
        buyer = await asyncio.create_subprocess_exec(
            *(sys.executable, str(BUYER), shop.dsn, ending, library),
            stdout=asyncio.subprocess.PIPE,
        )
        assert buyer.stdout is not None
        run = (await buyer.stdout.readline()).decode().strip()
        buyer.kill()
        await buyer.wait()
        assert run.startswith("run_")
        async with owner(dsn) as admin:

            async def nobody_left() -> bool:
                return not await admin.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", shop.role
                )

            await eventually(nobody_left, what="the end of its session")
            await take_all_in(make_desk(store, RealClock()))
            made = await admin.fetch("SELECT betimes.id_text('run', id) AS id FROM betimes.runs")
        assert [row["id"] for row in made] == ([run] if ending == "commit" else [])
