"""Master keys of processes that are no nodes: the ones of the database, or none."""

from dataclasses import replace
from pathlib import Path

import pytest

from betimes.app.dice import Dice
from betimes.app.masters import vault_beside
from betimes.config import Settings
from betimes.domain.errors import BadSetting
from betimes.store.database import Database
from betimes.store.vault import adopt_master
from betimes.testing.real_clock import RealClock

OURS, FOREIGN = "11" * 32, "22" * 32


def settings_with(tmp_path: Path, *keys: str, payloads: str = "plain") -> Settings:
    settings = Settings()
    vault = replace(
        settings.vault, keys=keys or None, keys_file=tmp_path / "none", payloads=payloads
    )
    return replace(settings, vault=vault)


async def test_only_the_keys_of_the_database_are_used(database: Database, tmp_path: Path) -> None:
    """What another key sealed nobody else could open; where nothing is sealed, none is needed."""
    clock, dice = RealClock(), Dice()
    first = await vault_beside(database, settings_with(tmp_path, OURS), clock, dice)
    assert first is not None
    assert await adopt_master(database, b"another") == first.master.id
    for keys in ((), (FOREIGN,)):
        plain = settings_with(tmp_path, *keys)
        assert await vault_beside(database, plain, clock, dice) is None
        sealed = settings_with(tmp_path, *keys, payloads="sealed")
        with pytest.raises(BadSetting, match="master key of this database"):
            await vault_beside(database, sealed, clock, dice)
    both = settings_with(tmp_path, FOREIGN, OURS, payloads="sealed")
    assert await vault_beside(database, both, clock, dice) is not None
