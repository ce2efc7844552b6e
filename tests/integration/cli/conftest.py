"""Fixtures of the tests of the command line: a served API, and a home of one's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api_kit import Served
from api_kit import served as serving


@pytest.fixture
async def served(dsn: str) -> AsyncIterator[Served]:
    """A running API on a fresh database."""
    async with serving(dsn) as api:
        yield api


@pytest.fixture
async def home(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose variables lead to the API with an administrator's key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("BETIMES_URL", f"http://127.0.0.1:{served.port}")
    monkeypatch.setenv("BETIMES_API_KEY", await served.key())
    for name in ("BETIMES_OUTPUT", "BETIMES_PROFILE", "BETIMES_TENANT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
