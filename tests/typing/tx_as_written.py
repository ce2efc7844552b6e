"""Enqueueing in one's own transaction as users write it, with the types of each library."""

import sqlite3
from typing import Any, assert_type

import asyncpg
import psycopg
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session, scoped_session

from betimes import App, Context, RunHandle
from betimes.sdk.tx import Noted, OutboxTx, Tx

app = App("http://127.0.0.1:8090", "btm_sk_…", name="shop")


@app.task(queue="mail")
def send_receipt(ctx: Context, order: int, *, copy: bool = False) -> str:
    return ctx.run_id


@app.task
async def charge(payment: str) -> dict[str, int]:
    return {payment: 1}


def by_psycopg(connection: psycopg.Connection[Any], cursor: psycopg.Cursor[Any]) -> None:
    tx = app.tx(connection)
    assert_type(tx, Tx)
    handle = tx.enqueue(send_receipt, 7, copy=True)
    assert_type(handle, RunHandle[str])
    assert_type(handle.id, str)
    assert_type(handle.deduplicated, bool)
    assert_type(tx.enqueue(charge, "p"), RunHandle[dict[str, int]])
    assert_type(app.tx(cursor).enqueue(send_receipt.configure(delay="10m"), 7), RunHandle[str])
    tx.enqueue(send_receipt, "7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    tx.enqueue(send_receipt)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    tx.enqueue(send_receipt, 7, colour=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def by_async_psycopg(connection: psycopg.AsyncConnection[Any]) -> None:
    assert_type(await app.tx(connection).aenqueue(send_receipt, 7), RunHandle[str])
    await app.tx(connection).aenqueue(charge, 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def by_asyncpg(pool: "asyncpg.Pool[asyncpg.Record]") -> None:
    async with pool.acquire() as connection, connection.transaction():
        assert_type(await app.tx(connection).aenqueue(send_receipt, 7), RunHandle[str])
        assert_type(
            await app.tx(connection).aenqueue(charge.configure(dedupe_key="p"), "p"),
            RunHandle[dict[str, int]],
        )


def by_sqlalchemy(connection: Connection, sessions: scoped_session[Session]) -> None:
    with Session(create_engine("sqlite://")) as session, session.begin():
        assert_type(app.tx(session).enqueue(send_receipt, 7), RunHandle[str])
    assert_type(app.tx(connection, tenant="acme").enqueue(send_receipt, 7), RunHandle[str])
    assert_type(app.tx(sessions()).enqueue(send_receipt, 7), RunHandle[str])


async def by_async_sqlalchemy(connection: AsyncConnection, session: AsyncSession) -> None:
    assert_type(await app.tx(connection).aenqueue(send_receipt, 7), RunHandle[str])
    assert_type(await app.tx(session).aenqueue(send_receipt, 7), RunHandle[str])


def by_an_outbox(connection: sqlite3.Connection) -> None:
    tx = app.tx(connection, outbox=True)
    assert_type(tx, OutboxTx)
    noted = tx.enqueue(send_receipt, 7)
    assert_type(noted, Noted[str])
    assert_type(noted.key, str)
    assert_type(app.tx("default"), Tx)
    tx.enqueue(charge, 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
