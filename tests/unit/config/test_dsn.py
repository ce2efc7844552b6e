"""Database addresses: the pooler switch is ours, the rest is the driver's."""

import pytest

from betimes.config.dsn import hide_password, read_dsn


@pytest.mark.parametrize(
    ("text", "dsn", "pgbouncer"),
    [
        ("postgresql://h/d", "postgresql://h/d", False),
        ("postgres://h/d?pgbouncer=true", "postgres://h/d", True),
        (
            "postgresql://h/d?sslmode=require&pgbouncer=TRUE",
            "postgresql://h/d?sslmode=require",
            True,
        ),
        ("postgresql://h/d?pgbouncer=false&a=b%20c", "postgresql://h/d?a=b%20c", False),
        ("postgresql:///d?host=/run/x&pgbouncer=1", "postgresql:///d?host=/run/x", True),
        (" postgresql://h/d ", "postgresql://h/d", False),
    ],
)
def test_the_pooler_switch_is_taken_out_of_the_query(text: str, dsn: str, pgbouncer: bool) -> None:
    assert read_dsn(text) == (dsn, pgbouncer)


@pytest.mark.parametrize(
    "text",
    [
        "mysql://h/d",
        "host=localhost dbname=x",
        "postgresql:h",
        "postgresql://h:port/d",
        "x",
        "postgresql://h/d?pgbouncer=maybe",
    ],
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|port|Port|pgbouncer"):
        read_dsn(text)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:p%40ss@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:p@ss:word@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h/d?password=x&a=b", "postgresql://u@h/d?password=***&a=b"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_a_shown_address_has_no_password(dsn: str, shown: str) -> None:
    assert hide_password(dsn) == shown
