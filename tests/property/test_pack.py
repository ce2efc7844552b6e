"""Packing loses no run, doubles none, and lets none out early."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.ids import ParcelId, RunId, ShardId, TenantId, compose, to_ms
from betimes.domain.parcel import QUANTUM_MS, RUNS_MAX, SPLIT_INTO, Waiting, pack, split

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHARD = ShardId(3)
TENANTS = [TenantId(compose(1, 0, number)) for number in (1, 2)]


@st.composite
def waiting(draw: st.DrawFn) -> list[Waiting]:
    count = draw(st.integers(0, 600))
    few = draw(st.integers(1, 40))
    return [
        Waiting(
            RunId(compose(to_ms(NOW), SHARD, number + 1)),
            TENANTS[draw(st.integers(0, 1)) if number < few else 0],
            NOW + timedelta(milliseconds=draw(st.integers(0, 40)) if number < few else 7),
            draw(st.integers(0, 9)) if number < few else 5,
            draw(st.sampled_from(["a", "b"])) if number < few else "a",
        )
        for number in range(count)
    ]


@given(runs=waiting())
def test_every_run_is_packed_once_with_its_likes_and_not_early(runs: list[Waiting]) -> None:
    parcels = pack(SHARD, runs)
    by_id = {run.id: run for run in runs}
    packed = [run for parcel in parcels for run in parcel.runs]
    assert sorted(packed) == sorted(by_id)
    assert len({parcel.id for parcel in parcels}) == len(parcels)
    for parcel in parcels:
        inside = [by_id[run] for run in parcel.runs]
        assert len(inside) <= RUNS_MAX
        assert {(run.tenant, run.queue, run.priority) for run in inside} == {
            (parcel.tenant, parcel.queue, parcel.priority)
        }
        late = [parcel.visible_at - run.due_at for run in inside]
        assert min(late) >= timedelta(0)
        assert max(late) < timedelta(milliseconds=QUANTUM_MS)


@given(runs=waiting())
def test_packing_again_gives_the_same_parcels(runs: list[Waiting]) -> None:
    assert pack(SHARD, runs) == pack(SHARD, runs)


@given(count=st.integers(1, RUNS_MAX))
def test_two_splits_leave_every_run_alone(count: int) -> None:
    runs = [
        Waiting(RunId(compose(to_ms(NOW), SHARD, number + 1)), TENANTS[0], NOW, 5, "a")
        for number in range(count)
    ]
    (parcel,) = pack(SHARD, runs)
    names = [ParcelId(compose(2, SHARD, number)) for number in range(SPLIT_INTO - 1)]
    pieces = split(parcel, names)
    assert len(pieces) <= SPLIT_INTO
    assert [run for piece in pieces for run in piece.runs] == list(parcel.runs)
    assert len({piece.id for piece in pieces}) == len(pieces)
    singles = [single for piece in pieces for single in split(piece, names)]
    assert all(len(single.runs) == 1 for single in singles)
