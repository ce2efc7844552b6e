"""The pytest plugin: fixtures for tests of apps.

betimes_harness   makes Harnesses that are closed when the test ends
betimes_server    a real service on a PostgreSQL of its own, one for the whole session
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from betimes.sdk.application import App
    from betimes.testing.harness import Harness
    from betimes.testing.server import BetimesServer


class MakeHarness(Protocol):
    """`betimes_harness(app, now="2026-03-28T00:00Z")`."""

    def __call__(self, *apps: "App", **options: Any) -> "Harness":
        """An open Harness."""
        ...


@pytest.fixture
def betimes_harness() -> Iterator[MakeHarness]:
    """A maker of Harnesses, which are closed when the test ends."""
    from betimes.testing.harness import Harness  # noqa: PLC0415 -- only who asks needs it

    with ExitStack() as opened:
        yield lambda *apps, **options: opened.enter_context(Harness(*apps, **options))


@pytest.fixture(scope="session")
def betimes_server() -> Iterator["BetimesServer"]:
    """A real service: `App(betimes_server.url, betimes_server.api_key)`."""
    from betimes.testing.server import running_server  # noqa: PLC0415 -- as above

    with running_server() as server:
        yield server
