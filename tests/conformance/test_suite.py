"""The suite about itself: its tables name what exists."""

import ast
from pathlib import Path

from conformance.roads import LACKS, ROADS

HERE = Path(__file__).parent


def rules() -> dict[str, str | None]:
    """Every rule by name, with its sentence."""
    found: dict[str, str | None] = {}
    for file in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                assert node.name not in found, f"{node.name} is stated twice"
                found[node.name] = ast.get_docstring(node)
    return found


def test_every_road_says_what_it_lacks() -> None:
    assert set(LACKS) == set(ROADS)


def test_every_rule_is_a_sentence() -> None:
    assert [name for name, sentence in rules().items() if not sentence] == []
