"""What a worker cannot do it leaves alone until others had their chance."""

from uuid import UUID

from betimes.domain.ids import ShardId, TenantId
from betimes.store.parcels import Source
from betimes.worker.hints import Board, Hint

HERE = Source(ShardId(1), "default", TenantId(UUID(int=1)), 0)
THERE = Source(ShardId(2), "default", TenantId(UUID(int=1)), 0)


def test_neither_hints_nor_polls_lead_back_before() -> None:
    board = Board(None)
    board.found([HERE, THERE])
    board.leave_to_others(HERE, until_ms=5_000)
    board.note(Hint(HERE, 1_000))
    board.found([HERE])

    assert board.due(4_999) == [THERE]
    assert board.due(5_000) == [THERE, HERE]


def test_afterwards_it_is_a_place_like_any_other() -> None:
    board = Board(None)
    board.leave_to_others(HERE, until_ms=5_000)
    assert board.due(5_000) == [HERE]
    board.served(HERE, now_ms=5_000, drained=True)
    board.note(Hint(HERE, 5_100))

    assert (board.due(5_099), board.due(5_100)) == ([], [HERE])
