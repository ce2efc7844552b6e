"""Episodes of alerts: each fires once and resolves once, whatever happens in between."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.alert import (
    FIRE,
    KINDS,
    RESOLVE,
    AlertState,
    Condition,
    Episode,
    Unit,
    check_rule,
    slowness,
    turn,
)
from betimes.domain.errors import Invalid

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NONE = timedelta(0)


def test_without_patience_it_fires_at_once() -> None:
    fired = turn(None, holds=True, silenced=False, hold=NONE, now=NOW)
    assert fired is not None
    assert (fired.state, fired.tell, fired.is_told) == (AlertState.FIRING, FIRE, True)
    assert turn(None, holds=False, silenced=False, hold=NONE, now=NOW) is None


def test_with_patience_it_has_to_hold_that_long() -> None:
    begun = turn(None, holds=True, silenced=False, hold=5 * MINUTE, now=NOW)
    assert begun is not None
    assert (begun.state, begun.tell) == (AlertState.PENDING, None)
    waiting = Episode(state=AlertState.PENDING, since=NOW)
    early = NOW + 5 * MINUTE - timedelta(microseconds=1)
    assert turn(waiting, holds=True, silenced=False, hold=5 * MINUTE, now=early) is None
    fired = turn(waiting, holds=True, silenced=False, hold=5 * MINUTE, now=NOW + 5 * MINUTE)
    assert fired is not None
    assert fired.tell == FIRE
    gone = turn(waiting, holds=False, silenced=False, hold=5 * MINUTE, now=NOW + MINUTE)
    assert gone is not None
    assert (gone.forget, gone.tell) == (True, None)


def test_what_still_holds_when_a_silence_ends_is_told_then() -> None:
    quiet = turn(None, holds=True, silenced=True, hold=NONE, now=NOW)
    assert quiet is not None
    assert (quiet.state, quiet.tell, quiet.is_told) == (AlertState.FIRING, None, False)
    episode = Episode(state=AlertState.FIRING, since=NOW, is_told=False)
    assert turn(episode, holds=True, silenced=True, hold=NONE, now=NOW) is None
    loud = turn(episode, holds=True, silenced=False, hold=NONE, now=NOW)
    assert loud is not None
    assert (loud.tell, loud.is_told) == (FIRE, True)
    over = turn(episode, holds=False, silenced=False, hold=NONE, now=NOW)
    assert over is not None
    assert over.tell is None


@given(
    looks=st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 400)), max_size=60),
    hold=st.integers(0, 600),
)
def test_fires_and_resolutions_alternate(looks: list[tuple[bool, bool, int]], hold: int) -> None:
    episode: Episode | None = None
    now, told = NOW, []
    for holds, silenced, seconds in looks:
        now += timedelta(seconds=seconds)
        done = turn(episode, holds=holds, silenced=silenced, hold=timedelta(seconds=hold), now=now)
        if done is None:
            continue
        if done.tell is not None:
            told.append(done.tell)
        if done.tell == FIRE:
            assert holds
            assert not silenced
            since = now if episode is None else episode.since
            assert now - since >= timedelta(seconds=hold)
        if done.state is AlertState.RESOLVED:
            episode = None
        else:
            since = now if episode is None else episode.since
            episode = Episode(state=done.state, since=since, is_told=done.is_told)
    assert told[0::2] == [FIRE] * len(told[0::2])
    assert told[1::2] == [RESOLVE] * len(told[1::2])


def test_usual_is_the_median_of_those_before() -> None:
    assert slowness([1.0] * 5) is None
    assert slowness([3.0, *[1.0] * 5]) == 3.0
    assert slowness([3.0, 1.0, 1.0, 1.0, 100.0, 0.5]) == 3.0
    assert slowness([3.0, *[0.0] * 9]) is None
    assert slowness([4.0, *[2.0] * 20, *[400.0] * 50]) == 2.0


def test_every_condition_can_be_asked_and_not_just_anything() -> None:
    for condition, kind in KINDS.items():
        given: dict[str, Any] = {
            "window": kind.window,
            "hold": NONE,
            "jobs": int(kind.jobs is True),
            "queues": int(kind.queues is True),
        }
        check_rule(condition, threshold=kind.least, **given)
        check_rule(condition, threshold=kind.most, **given)
        for threshold in (kind.least - 0.5, kind.most + 1, float("nan")):
            with pytest.raises(Invalid):
                check_rule(condition, threshold=threshold, **given)
        if kind.unit is Unit.COUNT:
            with pytest.raises(Invalid):
                check_rule(condition, threshold=1.5, **given)
        if kind.jobs or kind.queues:
            with pytest.raises(Invalid):
                check_rule(condition, threshold=kind.least, **{**given, "jobs": 0, "queues": 0})
    assert set(KINDS) == set(Condition)
