"""Fixtures of the runtime: a served API, an app on it, and both ways to it."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from api_kit import Served
from api_kit import served as serving
from betimes import App
from runtime_kit import DIRECT, HTTP, Direct, Way, http


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """A running API whose leases are short."""
    async with serving(dsn, lease_ttl=timedelta(seconds=2)) as api:
        yield api


@pytest.fixture
async def app(served: Served) -> AsyncIterator[App]:
    """An app without tasks."""
    one = App(f"http://127.0.0.1:{served.port}", await served.key(), name="tests")
    yield one
    await one.aclose()


@pytest.fixture(params=[HTTP, DIRECT])
async def lines(request: pytest.FixtureRequest, served: Served, dsn: str) -> Way:
    """Every test that takes this runs over HTTP and directly on the database."""
    if request.param == DIRECT:
        return Direct(served, dsn)
    return http(served, await served.key(kind="wk"))
