"""The reference page and the settings say the same."""

from pathlib import Path

from betimes.config import Settings
from betimes.config.reference import markdown
from betimes.config.rule import keys_of
from betimes.config.values import read_value

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    """When this fails: .venv/bin/python scripts/write_reference.py."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_every_setting_explains_itself_and_keeps_its_own_bounds() -> None:
    for key in keys_of(Settings).values():
        assert key.rule.says.endswith("."), key.path
        if key.default is None:
            assert key.optional, key.path
        else:
            assert read_value(key, key.default) is not None, key.path
