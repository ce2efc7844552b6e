"""Effects that happen once, in the user's own database."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from betimes import Context
from betimes.domain.errors import Invalid
from betimes.inbox import SCHEMA
from betimes.sdk.context import Facts

CTX = Context(Facts(run_id="run_1", handler="charge"))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(tmp_path / "own.db")
    connection.execute(SCHEMA)
    connection.execute("CREATE TABLE effects (name text)")
    connection.commit()
    yield connection
    connection.close()


def effects(path: sqlite3.Connection) -> int:
    (count,) = path.execute("SELECT count(*) FROM effects").fetchone()
    return int(count)


def test_the_first_one_takes_effect_and_later_ones_know(db: sqlite3.Connection) -> None:
    for expected in (True, False, False):
        with CTX.once("charge:7", connection=db) as first:
            assert first is expected
            if first:
                db.execute("INSERT INTO effects VALUES ('charge')")
        assert not db.in_transaction
    assert effects(db) == 1


def test_what_fails_was_never_there(db: sqlite3.Connection) -> None:
    """Key and effect go together: after a failure the next attempt is the first."""

    def fail() -> None:
        with CTX.once("k", connection=db) as first:
            assert first
            db.execute("INSERT INTO effects VALUES ('half')")
            raise RuntimeError("refused")

    with pytest.raises(RuntimeError):
        fail()
    assert effects(db) == 0
    with CTX.once("k", connection=db) as first:
        assert first


def test_a_transaction_that_is_open_stays_the_users_to_end(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO effects VALUES ('mine')")
    with CTX.once("k", connection=db) as first:
        assert first
    assert db.in_transaction
    db.rollback()
    assert effects(db) == 0
    with CTX.once("k", connection=db) as first:
        assert first


def test_something_that_is_no_connection_is_refused() -> None:
    with pytest.raises(Invalid, match="sqlite3, psycopg"), CTX.once("k", connection=object()):
        pytest.fail("not reached")


def test_a_context_without_a_worker_can_be_talked_to() -> None:
    CTX.log.info("nobody hears this", a=1)
    CTX.progress(0.5)
    CTX.checkpoint({"row": 1})
    CTX.heartbeat()
    assert CTX.cancelled is False
    with pytest.raises(ValueError, match="within 0 and 1"):
        CTX.progress(50)
    with pytest.raises(ValueError, match="at most"):
        CTX.checkpoint("x" * 70_000)
