"""Whatever the driver raises has one meaning of ours, and none of the server's words in it."""

import asyncio

import asyncpg
import pytest

from betimes.domain import errors
from betimes.domain.errors import (
    AlreadyExists,
    BadSetting,
    Bug,
    Contended,
    Invalid,
    SchedulerError,
    Unavailable,
    UnknownOutcome,
)
from betimes.store.faults import (
    BY_CLASS,
    BY_CODE,
    SENTENCES,
    kind_of,
    translate,
    translated,
)
from betimes.testing.proxy import FaultProxy

KNOWN = {
    code: kind
    for kind in vars(asyncpg.exceptions).values()
    if isinstance(kind, type) and (code := vars(kind).get("sqlstate"))
}
ROW = "Key (secret)=(hunter2) already exists."


def test_the_driver_knows_many_codes() -> None:
    assert len(KNOWN) > 200


@pytest.mark.parametrize("code", sorted({code[:2] for code in KNOWN}))
def test_every_class_of_codes_is_mapped_by_an_entry(code: str) -> None:
    assert code in BY_CLASS


@pytest.mark.parametrize("code", sorted(KNOWN))
def test_every_code_becomes_our_error_without_the_servers_words(code: str) -> None:
    fault = KNOWN[code](ROW)
    error = translate(fault) if isinstance(fault, asyncpg.PostgresError) else None
    if error is None:  # a warning of the server is no exception
        assert not isinstance(fault, asyncpg.PostgresError)
        return
    assert isinstance(error, kind_of(code))
    assert str(error) == SENTENCES[type(error)]
    assert "hunter2" not in str(error) + "".join(error.__notes__)
    assert error.__notes__ == [f"SQLSTATE {code}"]


def test_every_kind_in_the_tables_has_a_sentence() -> None:
    assert {*BY_CLASS.values(), *BY_CODE.values(), UnknownOutcome, Unavailable} <= set(SENTENCES)


def test_exceptions_by_code_say_something_else_than_their_class() -> None:
    assert [code for code, kind in BY_CODE.items() if BY_CLASS[code[:2]] is kind] == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("23505", AlreadyExists),
        ("40001", Contended),
        ("40P01", Contended),
        ("55P03", Contended),
        ("57014", errors.OutOfTime),
        ("25P04", errors.OutOfTime),
        ("22003", Invalid),
        ("57P01", Unavailable),
        ("57P03", Unavailable),
        ("25006", Unavailable),
        ("53300", errors.Overloaded),
        ("53100", errors.Overloaded),
        ("42601", Bug),
        ("08P01", BadSetting),
        ("26000", BadSetting),
        ("ZZ999", Bug),
    ],
)
def test_the_codes_that_matter(code: str, kind: type[SchedulerError]) -> None:
    assert kind_of(code) is kind


def test_a_pooler_that_was_not_declared_is_named_with_its_switch() -> None:
    assert "pgbouncer=true" in SENTENCES[kind_of("26000")]


@pytest.mark.parametrize(
    "fault",
    [
        asyncpg.ConnectionDoesNotExistError("gone"),
        asyncpg.AdminShutdownError("gone"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("another operation is in progress"),
    ],
)
def test_a_connection_lost_while_committing_is_an_unknown_outcome(fault: Exception) -> None:
    assert type(translate(fault)) is Unavailable
    assert type(translate(fault, committing=True)) is UnknownOutcome


def test_an_answer_to_a_commit_is_no_unknown_outcome() -> None:
    assert type(translate(asyncpg.SerializationError("no"), committing=True)) is Contended


async def test_a_refused_connection_is_the_databases() -> None:
    with pytest.raises(Unavailable), translated():
        await asyncpg.connect("postgresql://nobody@127.0.0.1:1/none")


async def test_a_timeout_of_the_driver_is_the_databases() -> None:
    async with FaultProxy(("127.0.0.1", 1)) as silent:
        silent.change(hold_new_connections=True)
        with pytest.raises(Unavailable), translated():
            await asyncpg.connect(f"postgresql://nobody@127.0.0.1:{silent.port}/none", timeout=0.05)


async def test_a_bad_address_is_a_bad_setting() -> None:
    with pytest.raises(BadSetting), translated():
        await asyncpg.connect("postgresql://nobody@127.0.0.1:1/none?sslmode=perhaps")


@pytest.mark.parametrize("fault", [TimeoutError("mine"), OSError("mine"), ValueError("mine")])
def test_errors_of_the_callers_own_code_stay_as_they_are(fault: Exception) -> None:
    with pytest.raises(type(fault), match="mine"), translated():
        raise fault


async def test_a_timeout_the_caller_set_around_something_else_stays_a_timeout() -> None:
    with pytest.raises(TimeoutError), translated():
        async with asyncio.timeout(0):
            await asyncio.Event().wait()


def test_our_own_errors_pass_through() -> None:
    mine = Contended("mine")
    with pytest.raises(Contended) as told, translated():
        raise mine
    assert told.value is mine
