"""Where a node keeps what it makes for itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from betimes.app.dice import Dice
from betimes.app.masters import masters_file, masters_of, require_private
from betimes.app.pepper import pepper_file, pepper_of
from betimes.config import Settings
from betimes.domain.errors import BadSetting


def test_a_home_that_nobody_has_looked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    for place in (masters_file(Settings()), pepper_file(Settings())):
        assert place.is_absolute()
        assert place.parent in (Path("/somewhere/.local/share"), Path("/var/lib"))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """With what to do about it; what is made here is for its owner only."""
    for name, read in (
        ("pepper", lambda at: pepper_of(with_files(at), Dice())),
        ("keys", lambda at: masters_of(with_files(at), Dice(), make=True)),
        ("keys", lambda at: masters_of(with_files(at), Dice(), make=False)),
        ("pepper", lambda at: require_private(with_files(at))),
        ("keys", lambda at: require_private(with_files(at))),
    ):
        place = tmp_path / name
        place.unlink(missing_ok=True)
        place.write_text("11" * 32)
        place.chmod(mode)
        with pytest.raises(BadSetting, match=f"chmod 600 {place}") as refused:
            read(tmp_path)
        assert f"{mode:04o}" in refused.value.sentence
        place.chmod(0o600)
        assert read(tmp_path)
        place.unlink()
        if read(tmp_path) not in ("fine", []):
            assert place.stat().st_mode & 0o777 == 0o600


def with_files(folder: Path) -> Settings:
    settings = Settings()
    return replace(
        settings,
        api=replace(settings.api, pepper_file=folder / "pepper"),
        vault=replace(settings.vault, keys_file=folder / "keys"),
    )
