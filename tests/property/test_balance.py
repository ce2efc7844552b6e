"""Every node that follows `balance` ends with its share, and nobody is taken from."""

from hypothesis import given
from hypothesis import strategies as st

from betimes.coordinator.balance import Moves, Seen, balance
from betimes.domain.ids import NodeId, ShardId, compose

NODES = [NodeId(compose(1, 0, number * 7919)) for number in range(6)]


def moves(
    me: NodeId, owners: dict[int, NodeId | None], live: set[NodeId], *, gentle: int = 3
) -> Moves:
    seen = [Seen(ShardId(shard), owner) for shard, owner in sorted(owners.items())]
    return balance(me, seen, live, acquire_max=gentle, release_max=gentle, shards_max=4096)


@given(
    owners=st.lists(st.sampled_from([None, *NODES]), min_size=1, max_size=64),
    live_count=st.integers(1, 6),
)
def test_passes_lead_to_fair_shares_and_then_to_rest(
    owners: list[NodeId | None], live_count: int
) -> None:
    """From any state, once dead nodes' leases have run out, all is owned in nearly equal parts."""
    live = set(NODES[:live_count])
    state = {shard: owner if owner in live else None for shard, owner in enumerate(owners)}
    for _ in range(200):
        before = dict(state)
        for node in sorted(live):
            step = moves(node, state, live)
            for shard in step.release:
                assert state[shard] == node, "only the owner gives away"
                state[shard] = None
            for shard in step.acquire:
                assert state[shard] is None, "nobody is taken from"
                state[shard] = node
        if state == before:
            break
    shares = [sum(owner == node for owner in state.values()) for node in live]
    assert sum(shares) == len(state)
    assert max(shares) - min(shares) <= 1
    assert all(moves(node, state, live) == Moves((), ()) for node in live), (
        "a fair state is at rest"
    )


def test_a_pass_is_gentle_while_others_live_and_swift_when_alone() -> None:
    free: dict[int, NodeId | None] = dict.fromkeys(range(64))
    assert len(moves(NODES[0], free, set(NODES[:2])).acquire) == 3
    assert len(moves(NODES[0], free, {NODES[0]}).acquire) == 64


def test_a_newcomer_is_given_room() -> None:
    mine: dict[int, NodeId | None] = dict.fromkeys(range(64), NODES[0])
    assert len(moves(NODES[0], mine, set(NODES[:2])).release) == 3
    assert moves(NODES[0], mine, {NODES[0]}) == Moves((), ())


def test_a_ceiling_is_respected() -> None:
    seen = [Seen(ShardId(shard), None) for shard in range(64)]
    step = balance(NODES[0], seen, NODES[:1], acquire_max=99, release_max=9, shards_max=5)
    assert len(step.acquire) == 5
