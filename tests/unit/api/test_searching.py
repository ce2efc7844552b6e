"""The search line, taken apart."""

import pytest

from betimes.api.problem import Trouble
from betimes.api.searching import read_search


def test_filters_tags_and_words() -> None:
    found = read_search('state:failed,dead queue:mail since:1h tag.env:prod "time out" gate')
    assert found.filters == {"state": ["failed", "dead"], "queue": ["mail"], "since": ["1h"]}
    assert found.tags == ["env:prod"]
    assert found.words == ["time out", "gate"]
    assert read_search('name:"two words"').filters == {"name": ["two words"]}
    assert read_search("   ").words == []


@pytest.mark.parametrize("line", ['"open', "a:", ":b", 'a:b"c', "x" * 501, "w " * 51])
def test_what_is_none_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(Trouble, match="parameter q: expected"):
        read_search(line)
