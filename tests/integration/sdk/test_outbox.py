"""Asking for runs in the outbox of another database, and what is no connection at all."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from betimes import App
from betimes.domain.errors import Invalid
from betimes.outbox import SCHEMAS

app = App(name="shop")


@app.task(queue="mail")
def send_receipt(order: int) -> None:
    """The handler is never called here."""


class Regret(Exception):
    """Why a transaction is rolled back."""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.executescript(SCHEMAS["sqlite"])
    yield connection
    connection.close()


def test_an_outbox_takes_what_another_database_commits(ledger: sqlite3.Connection) -> None:
    with ledger:
        noted = app.tx(ledger, outbox=True).enqueue(send_receipt, 1)
        app.tx(ledger, outbox=True).enqueue(send_receipt.configure(idempotency_key="k"), 2)
        app.tx(ledger.cursor(), outbox=True).enqueue(send_receipt.configure(idempotency_key="k"), 2)
    with suppress(Regret), ledger:
        app.tx(ledger, outbox=True).enqueue(send_receipt, 3)
        raise Regret

    rows = ledger.execute("SELECT id, handler, payload, options FROM betimes_outbox").fetchall()
    assert rows == [
        (noted.key, "send_receipt", '{"order":1}', '{"queue":"mail"}'),
        ("k", "send_receipt", '{"order":2}', '{"queue":"mail"}'),
    ]


async def test_an_outbox_in_postgresql(postgres: Any) -> None:
    name = await postgres.create(template="template0")
    with psycopg.connect(postgres.dsn(name)) as connection:
        connection.execute(SCHEMAS["postgresql"])
        app.tx(connection, outbox=True).enqueue(send_receipt.configure(delay="10m"), 1)
        connection.commit()
        app.tx(connection, outbox=True).enqueue(send_receipt, 2)
        connection.rollback()
        rows = connection.execute("SELECT payload, options FROM betimes_outbox").fetchall()
    await postgres.drop(name)

    [(payload, options)] = rows
    # A delay counts from the moment it was asked for.
    assert (payload, '"at":' in options, "delay" in options) == ('{"order":1}', True, False)


def test_what_is_no_connection_is_named() -> None:
    with pytest.raises(Invalid, match=r"got types\.SimpleNamespace"):
        app.tx(SimpleNamespace())


def test_a_connection_that_commits_by_itself_is_refused(ledger: sqlite3.Connection) -> None:
    ledger.isolation_level = None
    with pytest.raises(Invalid, match="inside a transaction"):
        app.tx(ledger, outbox=True).enqueue(send_receipt, 1)


ALONE = """
import sqlite3, sys
from betimes import App
App().tx(sqlite3.connect(":memory:"), outbox=True)
known = {"psycopg", "asyncpg", "sqlalchemy", "django"} & set(sys.modules)
assert not known, known
"""


def test_nothing_is_imported_that_is_not_there() -> None:
    # Asked in a fresh process: this one has every library.
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            ALONE,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
