"""The page of events is what the catalogue says."""

from pathlib import Path

from betimes.api.event_page import markdown
from betimes.domain.event import CATALOGUE, fits, is_pattern

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "events.md"


def test_the_page_is_made_from_the_catalogue() -> None:
    """When this fails: .venv/bin/python scripts/write_reference.py."""
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_patterns() -> None:
    assert all(is_pattern(name) for name in CATALOGUE)
    assert is_pattern("*")
    assert is_pattern("run.*")
    assert not is_pattern("nothing.*")
    assert not is_pattern("run.exploded")
    assert not is_pattern("run*")
    assert fits(["run.*"], "run.dead")
    assert not fits(["run.*"], "job.created")
    assert not fits([], "run.dead")
