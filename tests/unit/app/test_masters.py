"""Where a node keeps what it makes for itself."""

from pathlib import Path

import pytest

from betimes.app.masters import masters_file
from betimes.app.pepper import pepper_file
from betimes.config import Settings


def test_a_home_that_nobody_has_looked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    for place in (masters_file(Settings()), pepper_file(Settings())):
        assert place.is_absolute()
        assert place.parent in (Path("/somewhere/.local/share"), Path("/var/lib"))
