"""A worker leaves places to others that have nothing for it, for a while and no longer."""

from uuid import UUID

from betimes.domain.ids import ShardId, TenantId
from betimes.ops.strangers import PLACES_MAX, SHY_MS, SHY_MS_MAX, Strangers
from betimes.store.parcels import Source


def source(number: int = 1) -> Source:
    return Source(ShardId(1), f"queue {number}", TenantId(UUID(int=1)))


def test_longer_each_time_up_to_a_bound() -> None:
    strangers = Strangers()
    assert not strangers
    assert strangers.until_ms(source()) == 0
    assert strangers.found_foreign(source(), 1_000) == 1_000 + SHY_MS
    assert strangers.found_foreign(source(), 9_000) == 9_000 + 2 * SHY_MS
    assert strangers.found_foreign(source(), 20_000) == 20_000 + SHY_MS_MAX
    assert strangers.until_ms(source()) == 20_000 + SHY_MS_MAX


def test_over_when_something_is_ours() -> None:
    strangers = Strangers()
    strangers.found_foreign(source(), 1_000)
    strangers.found_ours(source())
    assert not strangers
    assert strangers.found_foreign(source(), 2_000) == 2_000 + SHY_MS, "it begins anew"


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    strangers = Strangers()
    for number in range(PLACES_MAX + 1):
        strangers.found_foreign(source(number), 1_000)
    assert strangers.until_ms(source(0)) == 0
    assert strangers.until_ms(source(1)) > 0
