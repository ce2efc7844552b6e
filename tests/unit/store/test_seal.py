"""Sealed bytes open with their key and in their place, and in no other way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.errors import Locked
from betimes.store.seal import PIECE_BYTES, SALT_BYTES, TAG_BYTES, place_of, seal, unseal

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
SALT = bytes(SALT_BYTES)
PLACE = place_of("tenant", "secrets", "name", 1)


@given(st.binary(max_size=200), st.binary(min_size=SALT_BYTES, max_size=SALT_BYTES))
def test_what_is_sealed_opens_again(content: bytes, salt: bytes) -> None:
    """And does not show through."""
    sealed = seal(KEY, PLACE, content, salt=salt)
    assert unseal(KEY, PLACE, sealed) == content
    assert len(content) < 4 or content not in sealed[SALT_BYTES:]


@pytest.mark.parametrize("size", [PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES])
def test_what_is_large_is_sealed_in_pieces(size: int) -> None:
    """Each with a tag of its own."""
    content = bytes(range(256)) * (size // 256 + 1)
    content = content[:size]
    sealed = seal(KEY, PLACE, content, salt=SALT)
    pieces = -(-size // PIECE_BYTES)
    assert len(sealed) == SALT_BYTES + size + pieces * TAG_BYTES
    assert unseal(KEY, PLACE, sealed) == content


def test_another_key_or_place_opens_nothing() -> None:
    """A row that is copied into another one is worthless there."""
    sealed = seal(KEY, PLACE, b"hush", salt=SALT)
    for key, place in (
        (OTHER, PLACE),
        (KEY, place_of("tenant", "secrets", "name", 2)),
        (KEY, place_of("tenant2", "secrets", "name", 1)),
    ):
        with pytest.raises(Locked):
            unseal(key, place, sealed)


def test_a_changed_byte_opens_nothing() -> None:
    """Wherever it is, the salt included."""
    sealed = seal(KEY, PLACE, b"hush", salt=SALT)
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(Locked):
            unseal(KEY, PLACE, bytes(changed))


@pytest.mark.parametrize("cut", ["end", "first", "swap", "nothing", "salt"])
def test_pieces_cannot_be_left_out_or_swapped(cut: str) -> None:
    """The last one says that it is the last, the others that they are not."""
    step = PIECE_BYTES + TAG_BYTES
    sealed = seal(KEY, PLACE, b"a" * PIECE_BYTES + b"b" * PIECE_BYTES, salt=SALT)
    salt, first, second = sealed[:SALT_BYTES], sealed[SALT_BYTES:][:step], sealed[-step:]
    wrong = {
        "end": salt + first,
        "first": salt + second,
        "swap": salt + second + first,
        "nothing": b"",
        "salt": salt,
    }
    with pytest.raises(Locked):
        unseal(KEY, PLACE, wrong[cut])


def test_places_are_told_apart_by_their_parts() -> None:
    """Not by how they read when they are written in a row."""
    assert place_of("a", "bc") != place_of("ab", "c")
