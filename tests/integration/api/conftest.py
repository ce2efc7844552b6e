"""Fixtures of the API tests."""

from collections.abc import AsyncIterator

import pytest

from api_kit import Client, Served
from api_kit import served as serving


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """A running API on a fresh database."""
    async with serving(dsn) as api:
        yield api


@pytest.fixture
async def admin(served: Served) -> Client:
    """Somebody who may do everything in the default tenant."""
    return await served.admin()
