"""Ids carry time and shard, sort by time, and are the same in every process."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.domain import ids
from betimes.domain.errors import Invalid

times = st.integers(min_value=0, max_value=ids.TIME_MS_MAX)
shards = st.integers(min_value=0, max_value=ids.SHARDS_MAX - 1)
tails = st.integers(min_value=0, max_value=(1 << 64) - 1)
composed = st.builds(ids.compose, times, shards, tails)


@given(time_ms=times, shard=shards, tail=tails)
def test_the_parts_come_back(time_ms: int, shard: int, tail: int) -> None:
    identifier = ids.compose(time_ms, shard, tail)
    assert ids.time_ms_of(identifier) == time_ms
    assert ids.shard_of(identifier) == shard
    assert identifier.int & ids.TAIL_MASK == tail & ids.TAIL_MASK
    assert identifier.version == 8
    assert identifier.variant == "specified in RFC 4122"


@given(first=composed, second=composed)
def test_order_is_the_order_of_time_then_shard(first: UUID, second: UUID) -> None:
    def key(identifier: UUID) -> tuple[int, int]:
        return ids.time_ms_of(identifier), ids.shard_of(identifier)

    if key(first) < key(second):
        assert first.bytes < second.bytes
        assert ids.to_text("run", first) < ids.to_text("run", second)


@given(identifier=composed)
def test_text_round_trip(identifier: UUID) -> None:
    text = ids.to_text("run", identifier)
    assert len(text) == len("run_") + 26
    assert ids.from_text("run", text) == identifier
    assert ids.from_text("run", "run_" + text[4:].lower()) == identifier


@given(identifier=composed)
def test_a_partition_bound_lies_below_its_ids_and_above_all_earlier_ones(identifier: UUID) -> None:
    time_ms = ids.time_ms_of(identifier)
    assert ids.floor_of(time_ms) < identifier
    if time_ms < ids.TIME_MS_MAX:
        assert identifier < ids.floor_of(time_ms + 1)


@given(job=composed, fire=st.integers(-(2**62), 2**62), due_ms=times)
def test_an_occurrence_is_a_function_of_its_arguments(job: UUID, fire: int, due_ms: int) -> None:
    run = ids.occurrence(job, fire, due_ms)
    assert run == ids.occurrence(job, fire, due_ms)
    assert run != ids.occurrence(job, fire + 1, due_ms)
    assert run != ids.occurrence(job, fire, due_ms, trigger="manual-1")
    assert ids.shard_of(run) == ids.shard_of(job)


def test_digests_are_the_same_in_every_process() -> None:
    """A salted hash would give every node its own ids."""
    script = (
        "from uuid import UUID; from betimes.domain import ids;"
        "job = ids.compose(1_700_000_000_000, 77, 12345);"
        "print(ids.to_text('run', ids.occurrence(job, 1, 2)), ids.shard_of_key(64, 'a', 'b', 'c'))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    job = ids.compose(1_700_000_000_000, 77, 12345)
    here = (
        f"{ids.to_text('run', ids.occurrence(job, 1, 2))} {ids.shard_of_key(64, 'a', 'b', 'c')}\n"
    )
    assert answers == {here}


def test_a_key_does_not_depend_on_where_its_parts_are_cut() -> None:
    assert len({ids.shard_of_key(4096, *parts) for parts in (("ab", "c"), ("a", "bc"))}) == 2


def test_random_ids_use_all_their_entropy() -> None:
    made = list(ids.random_ids(5, 3, bytes(range(32))))
    assert len(made) == len(set(made)) == 4
    assert {ids.time_ms_of(one) for one in made} == {5}


@given(instant=st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 -- hypothesis wants naive bounds
def test_time_round_trip_to_the_millisecond(instant: datetime) -> None:
    instant = instant.replace(tzinfo=UTC)
    identifier = ids.compose(ids.to_ms(instant), 0, 0)
    assert timedelta(0) <= instant - ids.time_of(identifier) < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job_00000000000000000000000000", "like run_"),
        ("run_0000", "like run_"),
        ("run_0000000000000000000000000U", "base 32"),
        ("run_Z0000000000000000000000000", "128 bits"),
        ("", "like run_"),
    ],
)
def test_a_bad_id_is_answered_by_a_sentence(text: str, expected: str) -> None:
    with pytest.raises(Invalid, match=expected):
        ids.from_text("run", text)


@pytest.mark.parametrize(("time_ms", "shard"), [(-1, 0), (1 << 48, 0), (0, -1), (0, 4096)])
def test_parts_out_of_range_are_refused(time_ms: int, shard: int) -> None:
    with pytest.raises(Invalid, match="expected"):
        ids.compose(time_ms, shard, 0)
