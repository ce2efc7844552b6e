"""The long runs of `make chaos`: every fault, under load, judged by the checker."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator

import pytest

from betimes.testing.history import History
from chaos.load import Client
from chaos.nemesis import ANY_STATEMENT, COMMIT, WORKER_PAUSE, Nemesis
from chaos.scene import assert_kept, play
from chaos.stage import SHARDS, Stage, a_stage
from embedded_kit import Place

AWAY_SECONDS = float(os.environ.get("BETIMES_CHAOS_AWAY", "10"))
"""How long the database stays away; `BETIMES_CHAOS_AWAY=600 make chaos` for ten minutes."""
pytestmark = [pytest.mark.db, pytest.mark.chaos, pytest.mark.timeout(600 + AWAY_SECONDS)]
RECOVERED_SECONDS = 3.0
CONNECTIONS_PER_SECOND_MAX = 8.0
"""Of one process while the database is away."""
NEIGHBOURS_SECONDS = 45.0
"""Who shares a parcel with poison waits for two leases to run out, and then for an empty worker."""
PERIODS = (1, 1, 1, 2, 2, 2, 3, 3, 3)


@pytest.fixture
async def stage(place: Place) -> AsyncIterator[Stage]:
    async with a_stage(place) as made:
        await made.until_balanced()
        yield made


async def test_processes_die_freeze_are_cut_and_lose_replies(stage: Stage) -> None:
    async def plot(stage: Stage, nemesis: Nemesis, _: Client) -> None:
        for owner, worker in (("c1", "w1"), ("c2", "w2")):
            await nemesis.swallow(owner, COMMIT)
            await nemesis.kill(worker)
            await nemesis.kill(owner)
            await stage.until_balanced()
            await nemesis.swallow(worker, ANY_STATEMENT, 1.0)
            await nemesis.freeze(worker, WORKER_PAUSE)
            await nemesis.freeze(owner)
            await stage.until_balanced()
            await nemesis.cut(worker, WORKER_PAUSE)
            await nemesis.swallow(owner, ANY_STATEMENT, 1.0)
            await nemesis.cut(owner)
            await stage.until_balanced()

    history = await play(stage, plot, periods=PERIODS)
    assert_kept(stage, history, unknown=frozenset({"I17"}))


async def test_processes_drain_under_load(stage: Stage) -> None:
    took: dict[str, float] = {}

    async def plot(stage: Stage, nemesis: Nemesis, _: Client) -> None:
        for name in ("w1", "c1", "w2", "c2", "j1"):
            took[name] = await nemesis.drain(name)
            await asyncio.sleep(3)
            await stage.until_balanced()

    history = await play(stage, plot, periods=PERIODS)
    sys.stderr.write(f"\ndrained within {took}\n")
    assert_kept(stage, history, unknown=frozenset({"I10", "I11", "I12", "I17"}))
    gaps = handovers(stage, history)
    sys.stderr.write(f"\nshards without an owner for {gaps} s\n")
    assert max(gaps.values()) < 2.0, gaps
    assert charged(history) == 0, "a drained run was charged an attempt"


def handovers(stage: Stage, history: History) -> dict[int, float]:
    """The longest time each shard had no owner after its release."""
    gaps = dict.fromkeys(range(SHARDS), 0.0)
    free: dict[int, float] = {}
    first = min(fault.began_at for fault in stage.faults)
    for row in sorted(history.shards, key=lambda row: row.order):
        if row.owner is None:
            free[row.shard] = row.at
        elif row.shard in free and row.at > first:
            gaps[row.shard] = max(gaps[row.shard], row.at - free.pop(row.shard))
    return gaps


def charged(history: History) -> int:
    """Runs that never fail and yet used more than one attempt."""
    flaky = {start.run for start in history.starts} - {end.run for end in history.ends}
    return sum(run.attempt > 2 for run in history.runs if run.id not in flaky)


async def test_postgresql_is_restarted_crashes_and_goes_away(stage: Stage) -> None:
    recovered: list[dict[str, float]] = []
    attempts: dict[str, float] = {}

    async def plot(stage: Stage, nemesis: Nemesis, _: Client) -> None:
        await nemesis.restart(signal.SIGINT)
        recovered.append(await recovery(stage))
        await nemesis.kill_backend()
        recovered.append(await recovery(stage))
        await nemesis.restart(signal.SIGQUIT)
        recovered.append(await recovery(stage))
        before = {node.name: node.proxy.accepted for node in stage.nodes.values()}
        await nemesis.restart(signal.SIGINT, away=AWAY_SECONDS)
        for node in stage.nodes.values():
            attempts[node.name] = (node.proxy.accepted - before[node.name]) / AWAY_SECONDS
        recovered.append(await recovery(stage))

    history = await play(stage, plot, periods=PERIODS)
    sys.stderr.write(f"\nrecovered {recovered}\nconnections per second of outage {attempts}\n")
    assert_kept(stage, history, unknown=frozenset({"I10", "I11", "I12", "I17"}))
    assert max(max(one.values()) for one in recovered) <= RECOVERED_SECONDS, recovered
    assert max(attempts.values()) <= CONNECTIONS_PER_SECOND_MAX, attempts
    assert not any(node.deaths for node in stage.nodes.values()), "a process did not survive"


async def recovery(stage: Stage) -> dict[str, float]:
    """How long after the return of the database everybody was back, by role."""
    back = stage.returned_at
    await asyncio.sleep(max(0.0, back + RECOVERED_SECONDS + 1.0 - time.time()))
    nodes = await stage.fetch(
        "SELECT name, heartbeat_at FROM betimes.nodes WHERE heartbeat_at < now() - interval '2 s'"
    )
    shards = await stage.fetch(
        "SELECT shard, min(at) AS at FROM evidence.shards"
        " WHERE at > to_timestamp($1) AND owner IS NOT NULL GROUP BY shard",
        back,
    )
    leases = await stage.fetch(
        "SELECT min(at) AS at FROM evidence.leases WHERE at > to_timestamp($1)", back
    )
    never = RECOVERED_SECONDS + 99.0
    owned = [row["at"].timestamp() - back for row in shards]
    return {
        "nodes": never if nodes else 0.0,
        "shards": max(owned) if len(owned) == SHARDS else never,
        "leases": leases[0]["at"].timestamp() - back if leases[0]["at"] else never,
    }


async def test_poison_is_contained(stage: Stage) -> None:
    async def plot(stage: Stage, _: Nemesis, client: Client) -> None:
        await client.poison_some()
        await asyncio.sleep(5)
        await client.poison_some()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            rows = await stage.fetch("SELECT count(*) AS dead FROM betimes.dead_letters")
            if rows[0]["dead"] == 2:
                return
            await asyncio.sleep(0.5)

    history = await play(stage, plot, periods=(1, 2, 3), lateness=NEIGHBOURS_SECONDS)
    assert_kept(stage, history, unknown=frozenset({"I10", "I11", "I12"}))
    sys.stderr.write(f"\nlatest start beside poison {lags_of(history)[-1]:.1f} s\n")


async def test_without_any_notification_everything_happens_a_poll_later(stage: Stage) -> None:
    async def plot(_: Stage, nemesis: Nemesis, client: Client) -> None:
        await nemesis.deafen()
        assert client.refused == 0
        await asyncio.sleep(20)

    history = await play(stage, plot, periods=PERIODS)
    assert_kept(stage, history, unknown=frozenset({"I10", "I11", "I12", "I17"}))
    lags = lags_of(history)
    sys.stderr.write(
        f"\nlag p50 {lags[len(lags) // 2]:.3f} p99 {lags[len(lags) * 99 // 100]:.3f}\n"
    )
    assert lags[len(lags) * 99 // 100] < 0.5 + 1.0, "later than one poll and some patience"


def lags_of(history: History) -> list[float]:
    """Due to first start, sorted."""
    first: dict[object, float] = {}
    for start in history.starts:
        first[start.run] = min(start.at, first.get(start.run, start.at))
    return sorted(first[run.id] - run.due_at for run in history.runs if run.id in first)
