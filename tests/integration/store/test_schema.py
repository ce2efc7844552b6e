"""`schema.sql` is what the migrations make, so that a reader can trust it."""

from importlib.resources import files

import pytest

from betimes.embedded import Binaries
from betimes.testing.postgres import TEMPLATE, PostgresKit
from betimes.testing.schema import HEADER, dump, normalised
from store_kit import owner

MAJOR = 18


async def test_the_written_schema_is_what_the_migrations_make(
    postgres: PostgresKit, binaries: Binaries
) -> None:
    async with owner(postgres.dsn("postgres")) as connection:
        major = connection.get_server_version().major
    if major != MAJOR:
        pytest.skip(f"schema.sql is written by PostgreSQL {MAJOR}, this is {major}")
    written = (files("betimes.store") / "schema.sql").read_text(encoding="utf-8")
    assert dump(binaries, postgres.dsn(TEMPLATE)) == written, "run `make schema` and commit it"


def test_versions_and_session_settings_are_left_out() -> None:
    noise = "--\n-- Dumped by pg_dump version 18.4\n\\restrict x\nSET lock_timeout = 0;\n\n\n\n"
    assert normalised(f"{noise}CREATE;\n") == f"{HEADER}CREATE;\n"
