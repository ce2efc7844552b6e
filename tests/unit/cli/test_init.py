"""The first files of a project can be used as they are."""

from pathlib import Path

import pytest

from betimes.app.hands import load_app
from betimes.config.load import examine
from betimes.domain.errors import BadSetting
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


def test_a_module_that_breaks_is_told_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it broke in the code of the user, and not where we imported it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_tasks.py").write_text("import json\n\nraise ValueError('boom')\n")
    with pytest.raises(BadSetting) as told:
        load_app("broken_tasks:app")
    assert "expected to import 'broken_tasks', got" in told.value.sentence
    assert 'broken_tasks.py", line 3' in told.value.sentence
    assert "ValueError: boom" in told.value.sentence
    assert "importlib" not in told.value.sentence
    (tmp_path / "needy_tasks.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(BadSetting, match="No module named 'nowhere_to_be_found'"):
        load_app("needy_tasks:app")
