"""What is kept is bounded by its weight."""

import pytest

from betimes.domain.kept import ENTRY_BYTES, Kept, kept_by_text


def test_what_was_not_used_goes_first() -> None:
    kept: Kept[str, int] = Kept(10)
    kept.put("a", 1, 4)
    kept.put("b", 2, 4)
    assert kept.get("a") == 1
    kept.put("c", 3, 4)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)
    assert (kept.weight, len(kept)) == (8, 2)


def test_the_same_key_counts_once() -> None:
    kept: Kept[str, int] = Kept(10)
    for number in range(5):
        kept.put("a", number, 3)
    assert (kept.get("a"), kept.weight, len(kept)) == (4, 3, 1)


def test_what_is_too_heavy_is_not_kept_and_stands_in_nobodys_way() -> None:
    kept: Kept[str, int] = Kept(10)
    kept.put("a", 1, 4)
    assert kept.put("b", 2, 11) == 2
    assert (kept.get("b"), kept.get("a"), kept.weight) == (None, 1, 4)


def test_a_value_that_grew_too_heavy_is_not_kept_as_it_was() -> None:
    kept: Kept[str, int] = Kept(10)
    kept.put("a", 1, 4)
    kept.put("a", 2, 11)
    assert (kept.get("a"), kept.weight, len(kept)) == (None, 0, 0)


def test_there_are_no_more_than_so_many_however_light() -> None:
    kept: Kept[str, int] = Kept(100, entries=2)
    for key in "abc":
        kept.put(key, 1, 1)
    assert (kept.get("a"), len(kept), kept.weight) == (None, 2, 2)


def test_texts_are_read_once_as_long_as_they_fit() -> None:
    read: list[str] = []

    @kept_by_text(3 * ENTRY_BYTES, factor=0)
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    large = "x" * ENTRY_BYTES
    assert [length("a"), length("a"), length(large), length(large)] == [1, 1, 200, 200]
    assert read == ["a", large]
    length("y" * ENTRY_BYTES)  # three entries and two long texts are too much
    assert [length("a"), length(large)] == [1, 200]
    assert read == ["a", large, "y" * ENTRY_BYTES, "a", large]


def test_what_a_text_comes_to_may_be_nothing_and_errors_are_not_kept() -> None:
    calls: list[str | None] = []

    @kept_by_text(10_000)
    def odd(text: str | None) -> None:
        calls.append(text)
        if text == "bad":
            raise ValueError(text)

    odd(None)
    odd(None)
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            odd("bad")
    assert calls == [None, "bad", "bad"]
