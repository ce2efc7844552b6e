"""The switch for a pooler is read out of the address, and the driver never sees it."""

from datetime import timedelta

import asyncpg
import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import BadSetting
from betimes.store.pool import Address, session_settings

DSN = "postgresql://user:p%40ss@/name?host=/run/pg&port=5433"


def test_an_address_without_the_switch_is_left_alone() -> None:
    assert Address.of(DSN) == Address(DSN, pooled=False)


@pytest.mark.parametrize("value", ["true", "1", "yes", "ON"])
def test_the_switch_is_taken_out_wherever_it_stands(value: str) -> None:
    for dsn in (f"{DSN}&pgbouncer={value}", DSN.replace("?", f"?pgbouncer={value}&")):
        assert Address.of(dsn) == Address(DSN, pooled=True)


def test_a_switch_that_is_off_is_taken_out_too() -> None:
    assert Address.of("postgresql://h/d?pgbouncer=false") == Address(
        "postgresql://h/d", pooled=False
    )


def test_settings_can_say_it_as_well() -> None:
    assert Address.of(DSN, pgbouncer=True).pooled


@pytest.mark.parametrize("dsn", ["mysql://h/d", "postgresql://h/d?pgbouncer=perhaps"])
def test_a_bad_address_is_told_without_being_quoted(dsn: str) -> None:
    with pytest.raises(BadSetting) as told:
        Address.of(dsn)
    assert dsn not in str(told.value)


def test_bounds_are_told_in_milliseconds_and_only_to_servers_that_know_them() -> None:
    settings = DatabaseSettings(transaction_timeout=timedelta(seconds=2.5))
    old, new = session_settings(settings, 160_000), session_settings(settings, 170_000)
    assert old["idle_in_transaction_session_timeout"] == "2500"
    assert "transaction_timeout" not in old
    assert new == old | {"transaction_timeout": "2500"}


def test_the_driver_still_raises_what_we_expect_of_it() -> None:
    """Timeouts and lost connections arrive as these; see `faults.LOST`."""
    assert issubclass(TimeoutError, OSError)
    assert issubclass(asyncpg.ConnectionDoesNotExistError, asyncpg.PostgresConnectionError)
