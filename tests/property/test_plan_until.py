"""How far ahead a shard is planned: never too little, never too much, and never all at once."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.coordinator.plan import plan_until
from betimes.domain.ids import SHARDS_MAX, ShardId

SHARDS = st.integers(0, SHARDS_MAX - 1).map(ShardId)
INSTANTS = st.integers(0, 100 * 366 * 86_400 * 1_000_000).map(
    lambda us: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)
)
HORIZONS = st.integers(10, 3_600).map(lambda seconds: timedelta(seconds=seconds))


@given(SHARDS, INSTANTS, HORIZONS)
def test_between_the_half_and_the_whole_of_the_horizon(
    shard: ShardId, now: datetime, horizon: timedelta
) -> None:
    assert now + horizon / 2 < plan_until(shard, now, horizon) <= now + horizon


@given(SHARDS, INSTANTS, HORIZONS)
def test_the_next_pass_goes_half_a_horizon_further(
    shard: ShardId, now: datetime, horizon: timedelta
) -> None:
    """A job that was planned up to a mark comes due again when the mark is a half horizon away."""
    until = plan_until(shard, now, horizon)
    assert plan_until(shard, until - horizon / 2, horizon) == until + horizon / 2


@given(INSTANTS, HORIZONS, st.integers(16, 256))
def test_shards_take_turns(now: datetime, horizon: timedelta, shards: int) -> None:
    """In no tenth of a turn more than twice its part of the shards is planned."""
    half = horizon / 2
    tenths = [
        int((plan_until(ShardId(shard), now, horizon) - now - half) / half * 9.999)
        for shard in range(shards)
    ]
    assert max(map(tenths.count, range(10))) <= 2 * -(-shards // 10)
