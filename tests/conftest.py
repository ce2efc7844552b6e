"""Profiles and fixtures shared by every kind of test."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from betimes.config.settings import DatabaseSettings
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.testing.postgres import PostgresKit, postgres_kit

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "nightly", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
_default = "ci" if os.environ.get("CI") else "dev"  # noqa: TID251 -- the tests' own switch
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _default))  # noqa: TID251


def half() -> float:
    """A die that always shows the middle."""
    return 0.5


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresKit]:
    """One real server per test process, `BETIMES_TEST_PG_BIN` chooses which PostgreSQL."""
    chosen = os.environ.get("BETIMES_TEST_PG_BIN")  # noqa: TID251 -- the tests' own switch
    # Not pytest's own folder: root closes that one to the account PostgreSQL runs under.
    with tempfile.TemporaryDirectory(prefix="betimes-test-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        binaries = Path(chosen) if chosen else None
        with postgres_kit(Path(folder) / "server", binaries=binaries) as server:
            yield server


@pytest.fixture
async def dsn(postgres: PostgresKit) -> AsyncIterator[str]:
    """A fresh database with the newest schema."""
    name = await postgres.create()
    yield postgres.dsn(name)
    await postgres.drop(name)


@pytest.fixture
def clock() -> ManualClock:
    """Time that stands still."""
    return ManualClock()


@pytest.fixture
async def database(dsn: str, clock: ManualClock) -> AsyncIterator[Database]:
    """An open store on a fresh database, ruled by the test's clock."""
    opened = await Database.open(DatabaseSettings(), dsn=dsn, clock=clock, roll=half)
    yield opened
    await opened.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a database, directly or not, is a `db` test."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.db)
