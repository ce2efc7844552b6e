"""Nodes tell each other that they are alive, and how far their clocks are off."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.app.presence import Presence
from betimes.config import Settings
from betimes.domain.ids import NodeId
from betimes.store import nodes
from betimes.store.database import Database
from betimes.store.nodes import NodeCard
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock


def a_node(database: Database, clock: ManualClock, *, number: int, recorder: Recorder) -> Node:
    return Node(
        card=NodeCard(
            id=NodeId(UUID(int=number)),
            name=f"n{number}",
            version="1",
            tzdata="2026.1",
            roles=("worker",),
        ),
        settings=Settings(),
        clock=clock,
        dice=Dice(seed=1),
        telemetry=Telemetry(clock=clock, handlers=[recorder]),
        database=database,
        listen_dsn="",
    )


async def test_nodes_see_each_other_until_they_fall_silent_or_leave(
    database: Database, clock: ManualClock
) -> None:
    recorder = Recorder()
    first = Presence(node=a_node(database, clock, number=1, recorder=recorder))
    second = Presence(node=a_node(database, clock, number=2, recorder=Recorder()))
    assert await first.tick() == 1
    assert await second.tick() == 2
    assert await first.tick() == 2
    assert await first.tick() == 2

    clock.advance(timedelta(seconds=16))
    assert await first.tick() == 1

    assert await second.tick() == 2
    await nodes.leave(database, NodeId(UUID(int=2)))
    await nodes.leave(database, NodeId(UUID(int=2)))
    assert await first.tick() == 1
    changes = [event.metadata["nodes"] for event in recorder.named("presence.changed")]
    assert changes == [["n1"], ["n1", "n2"], ["n1"]]


async def test_a_node_tells_its_skew_and_that_it_drains(
    database: Database, clock: ManualClock
) -> None:
    node = a_node(database, clock, number=1, recorder=Recorder())
    presence = Presence(node=node)
    await presence.tick()
    assert node.telemetry.reading("betimes_clock_skew_seconds") == 0.0
    await presence.tick(draining=True)
    (seen,) = await nodes.seen_since(database, clock.now() - timedelta(seconds=1))
    assert (seen.name, seen.draining, seen.skew_ms) == ("n1", True, 0.0)
    assert seen.started_at == seen.heartbeat_at == clock.now()


async def test_a_node_says_once_that_its_clock_is_wrong(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the log of the node alone nobody would know: its times are what is wrong."""
    recorder = Recorder()
    presence = Presence(node=a_node(database, clock, number=1, recorder=recorder))
    beat = nodes.beat

    async def ahead(*arguments: Any, **given: Any) -> datetime:
        return await beat(*arguments, **given) + timedelta(seconds=90)

    await presence.tick()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(nodes, "beat", ahead)
        await presence.tick()
        await presence.tick()
    (wrong,) = recorder.named("clock.wrong")
    assert wrong.level == "warning"
    await presence.tick()
    assert len(recorder.named("clock.right")) == 1
