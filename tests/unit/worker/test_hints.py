"""Hints are read leniently, and the board remembers where to look when."""

from uuid import UUID

import pytest

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.leased import Source
from betimes.worker.hints import Board, Hint, read_hints

TENANT = TenantId(UUID(int=7))


def source(shard: int = 1, queue: str = "q") -> Source:
    return Source(ShardId(shard), queue, TENANT)


def test_a_hint_names_shard_queue_tenant_and_time() -> None:
    assert list(read_hints(f"3:mail:{TENANT}:1700")) == [Hint(source(3, "mail"), 1700)]
    assert list(read_hints(f"3:a:b:{TENANT}:1700")) == [Hint(source(3, "a:b"), 1700)]
    in_bucket = source(3, "mail")._replace(fair=12)
    assert list(read_hints(f"3/12:mail:{TENANT}:1700")) == [Hint(in_bucket, 1700)]


def test_several_times_and_places_come_together() -> None:
    assert list(read_hints(f"3:mail:{TENANT}:1700,40\n4:mail:{TENANT}:5")) == [
        Hint(source(3, "mail"), 1700),
        Hint(source(3, "mail"), 1740),
        Hint(source(4, "mail"), 5),
    ]


@pytest.mark.parametrize("text", ["", "x", "1:q:nobody:5", f"one:q:{TENANT}:5", f"1:q:{TENANT}:"])
def test_what_is_no_hint_is_ignored(text: str) -> None:
    assert list(read_hints(text)) == []


def test_a_source_is_due_from_its_time_on_until_it_is_drained() -> None:
    board = Board(None)
    assert board.note(Hint(source(), 100))
    assert board.due(99) == []
    assert board.due(100) == [source()]
    board.served(source(), now_ms=100, drained=False)
    assert board.due(100) == [source()]
    board.served(source(), now_ms=100, drained=True)
    assert board.due(100) == []


def test_what_was_told_for_later_survives_a_turn_before_it() -> None:
    board = Board(None)
    board.note(Hint(source(), 100))
    assert not board.note(Hint(source(), 200))
    assert not board.note(Hint(source(), 200))
    board.served(source(), now_ms=150, drained=True)
    assert board.due(199) == []
    assert board.next_ms() == 200


def test_turns_go_round() -> None:
    board = Board(None)
    board.found([source(1), source(2), source(3)])
    assert board.due(0)[0] == source(1)
    board.served(source(1), now_ms=0, drained=False)
    assert board.due(0) == [source(2), source(3), source(1)]


def test_whoever_had_no_turn_is_next() -> None:
    """A claim whose places were taken by the first must not send the others to the end."""
    board = Board(None)
    board.found([source(1), source(2), source(3), source(4)])
    for shard in (1, 2, 3):
        board.served(source(shard), now_ms=0, drained=False)
    board.passed_over([source(2), source(3), source(9)])
    assert board.due(0) == [source(2), source(3), source(4), source(1)]


def test_other_queues_are_not_noted() -> None:
    board = Board(frozenset({"mine"}))
    assert not board.note(Hint(source(queue="yours"), 0))
    assert board.note(Hint(source(queue="mine"), 0))
