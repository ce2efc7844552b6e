"""`betimes producer`, `betimes outbox` and `betimes relay`, as an administrator types them."""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

import asyncpg

from api_kit import served as serving
from betimes import App
from store_kit import owner
from tx_kit import ask, open_shop

app = App(name="shop")


@app.task
def send_receipt(order: int) -> None:
    """Never called here."""


async def betimes(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """The program: its exit code, what it printed, what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "betimes", *arguments),
        env={**os.environ, **environment},  # noqa: TID251 -- handed on to the program
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, said = await process.communicate()
    return process.returncode or 0, printed.decode(), said.decode()


async def test_a_role_is_let_in_and_out(dsn: str) -> None:
    async with open_shop(dsn, None) as shop:
        code, _, said = await betimes("producer", "add", shop.role, "--no-hints", "--dsn", dsn)
        assert (code, f"{shop.role} may enqueue" in said) == (0, True), said
        buyer = await asyncpg.connect(shop.dsn)
        await ask(buyer, "one")
        assert (await betimes("producer", "list", "--dsn", dsn))[1] == (
            f"{shop.role}\tdefault\tno hints\n"
        )
        assert (await betimes("producer", "remove", shop.role, "--dsn", dsn))[0] == 0
        code, _, said = await betimes("producer", "remove", shop.role, "--dsn", dsn)
        assert (code, "is no producer" in said) == (3, True), said
        code, _, said = await betimes("producer", "add", shop.role, "--tenant", "x", "--dsn", dsn)
        assert (code, "no tenant 'x'" in said) == (3, True), said
        await buyer.close()


async def test_an_outbox_is_made_and_emptied(dsn: str, tmp_path: Path) -> None:
    code, ddl, _ = await betimes("outbox", "ddl", "--dialect", "sqlite")
    assert code == 0
    ledger = sqlite3.connect(tmp_path / "shop.db")
    ledger.executescript(ddl)
    with ledger:
        app.tx(ledger, outbox=True).enqueue(send_receipt, 7)
    async with serving(dsn) as api:
        code, _, said = await betimes(
            *("relay", "--from", f"sqlite:///{tmp_path}/shop.db", "--once"),
            BETIMES_URL=f"http://127.0.0.1:{api.port}",
            BETIMES_API_KEY=await api.key(),
        )
        assert code == 0, said
    assert ledger.execute("SELECT count(*) FROM betimes_outbox").fetchone() == (0,)
    ledger.close()
    async with owner(dsn) as connection:
        assert await connection.fetchval("SELECT payload FROM betimes.runs") == b'{"order":7}'
    code, _, said = await betimes("relay", "--from", "mysql://x", "--once")
    assert (code, "expected postgresql://" in said) == (2, True), said
