"""What is kept is bounded by its weight."""

from betimes.domain.kept import Kept


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
    assert (kept.get("b"), kept.weight) == (None, 0)
