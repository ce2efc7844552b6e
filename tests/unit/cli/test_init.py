"""The first files of a project can be used as they are."""

from pathlib import Path

import pytest

from betimes.app.hands import load_app
from betimes.config.load import examine
from cli_kit import call


def test_the_files_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = call("init")
    assert told.code == 0, told.err
    assert examine(environ={}).problems == ()
    app = load_app("tasks:app")
    assert list(app.tasks) == ["greet"]


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    assert call("init", str(tmp_path / "new")).code == 0
    (tmp_path / "new" / "tasks.py").write_text("mine", encoding="utf-8")
    refused = call("init", str(tmp_path / "new"))
    assert refused.code == 5
    assert "tasks.py would be overwritten" in refused.err
    assert (tmp_path / "new" / "tasks.py").read_text(encoding="utf-8") == "mine"
    assert call("init", str(tmp_path / "new"), "--force").code == 0
