"""A place of its own for every chaos run, kept when the run fails."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from betimes.embedded import find_binaries
from embedded_kit import Place, quick_disk


@pytest.fixture
def place() -> Iterator[Place]:
    """A directory that every account may enter, since PostgreSQL does not run as root."""
    root = Path(tempfile.mkdtemp(prefix="betimes-chaos-", dir=quick_disk()))
    root.chmod(0o755)
    yield Place(root, find_binaries())
    shutil.rmtree(root, ignore_errors=True)
