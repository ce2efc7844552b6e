"""A PostgreSQL whose clock can be stepped while it runs, by libfaketime."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from betimes.embedded import launch
from betimes.testing.postgres import PostgresKit, postgres_kit

LIBRARIES = (
    Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"),
    Path("/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"),
)


def faketime() -> Path | None:
    """Where libfaketime is, if it is installed."""
    return next((one for one in LIBRARIES if one.exists()), None)


class SteppedKit:
    """A server, and the file that tells its clock how far it is off."""

    def __init__(self, server: PostgresKit, offset: Path) -> None:
        self.server = server
        self._offset = offset

    def step(self, seconds: float) -> None:
        """From here on its clock is so many seconds ahead of ours."""
        self._offset.write_text(f"{seconds:+.3f}\n")


@contextmanager
def stepped_kit(library: Path) -> Iterator[SteppedKit]:
    """Start a server with a clock of its own."""
    with tempfile.TemporaryDirectory(prefix="betimes-test-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        offset = root / "offset"
        offset.write_text("+0.000\n")
        faked = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }
        with patch.dict(launch.ENVIRONMENT, faked), postgres_kit(root / "server") as server:
            yield SteppedKit(server, offset)
