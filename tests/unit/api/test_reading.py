"""Bodies that are made to cost much: each is walked through once, whatever it holds.

Anything that looks at a part of a text anew for every other part would need hours for these, and is
ended by the time every test has.
"""

import pytest

from betimes.api.problem import Trouble
from betimes.api.reading import DEPTH_MAX, read_json

LARGE = 1 << 20
DEEP = "[" * (DEPTH_MAX + 1)


def refused(body: str) -> str:
    with pytest.raises(Trouble) as raised:
        read_json(body.encode())
    assert raised.value.code == "malformed_json"
    return raised.value.detail


def test_a_string_without_an_end_is_walked_through_once() -> None:
    assert "levels deep" in refused(DEEP + '"' + '\\"' * (LARGE // 2))
    assert "Unterminated string" in refused("[[]," * 1 + "[]," * DEPTH_MAX + '"' + '\\"' * LARGE)


def test_a_doubled_name_is_found_in_one_pass() -> None:
    names = [f"{number:x}" for number in range(LARGE // 9)]
    body = "{" + ",".join(f'"{name}":1' for name in [*names, names[-1]]) + "}"
    assert f"the name '{names[-1]}' stands twice" in refused(body)


def test_brackets_in_strings_are_no_levels() -> None:
    assert read_json(f'["{DEEP}", "\\"{DEEP}", "{DEEP}\\\\"]'.encode())[0] == DEEP
    level = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert read_json(level.encode())
    assert "levels deep" in refused('["\\\\",' + level + "]")
