"""The wheel gives back what was put in, in the order of dueness, and nothing early."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from betimes.coordinator.wheel import Wheel

shards = st.integers(0, 3)
times = st.integers(0, 2_000)


class WheelAgainstAList(RuleBasedStateMachine):
    """A sorted list is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.wheel: Wheel[int] = Wheel(slot_ms=16)
        self.model: list[tuple[int, int, int]] = []
        self.number = 0

    @rule(shard=shards, due=times)
    def put(self, shard: int, due: int) -> None:
        self.wheel.put(shard, due, self.number)
        self.model.append((due, self.number, shard))
        self.number += 1

    @rule(until=times)
    def take(self, until: int) -> None:
        expected = sorted(entry for entry in self.model if entry[0] <= until)
        taken = list(self.wheel.take(until))
        assert taken == [(shard, number) for _, number, shard in expected]
        self.model = [entry for entry in self.model if entry[0] > until]

    @precondition(lambda self: self.model)
    @rule(shard=shards)
    def drop(self, shard: int) -> None:
        assert self.wheel.drop(shard) == sum(entry[2] == shard for entry in self.model)
        self.model = [entry for entry in self.model if entry[2] != shard]

    @invariant()
    def counts_and_the_next_one_agree(self) -> None:
        assert len(self.wheel) == len(self.model)
        assert self.wheel.next_due() == min((entry[0] for entry in self.model), default=None)
        for shard in range(4):
            assert self.wheel.count(shard) == sum(entry[2] == shard for entry in self.model)


TestWheel = WheelAgainstAList.TestCase
