"""What the command line opens, and what it says about it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from process_kit import betimes, key_said_in, running


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("listen", ["0.0.0.0", "::", "192.0.2.7", "example.com"])  # noqa: S104 -- refused
def test_dev_stays_on_this_machine_unless_told(home: Path, listen: str) -> None:
    refused = betimes(home, "dev", "--listen", listen)
    assert refused.returncode != 0
    assert "--expose" in refused.stderr
    assert "whatever listens on this machine" in " ".join(refused.stderr.split())


def test_dev_that_was_not_told_to_listens_to_nobody_else(home: Path) -> None:
    """It ends before anything of it can be reached."""
    with running(home, "dev", "--no-demo", "--listen", "0.0.0.0") as dev:  # noqa: S104 -- refused
        assert dev.popen.stdout is not None
        for line in dev.popen.stdout:
            assert "api.listening" not in line, "others can reach it, and through it this machine"


def test_dev_opens_what_it_is_told_to_and_shows_no_key_to_a_log(home: Path) -> None:
    """And a key for the first administrator is made once."""
    with running(home, "dev", "--no-demo", "--expose", "--listen", "0.0.0.0") as dev:  # noqa: S104
        key = key_said_in(dev.until("key for development"))
        dev.until("api.listening")
        assert key.startswith("btm_ak_")
        again = betimes(home, "key", "bootstrap")
        assert again.returncode != 0
        assert "--another" in again.stderr
        assert "btm_" not in again.stdout
        another = betimes(home, "key", "bootstrap", "--another")
        assert another.returncode == 0, another.stderr
        assert another.stdout.startswith("btm_ak_")
        assert another.stdout.strip() != key
    assert "btm_" not in str(dev.said)
