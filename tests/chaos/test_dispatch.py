"""Dispatchers are killed at random, endpoints go down and come back: everybody is told all."""

import asyncio
import os
import random
import sys
import time

import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.ids import to_text
from betimes.domain.notice import DeliveryState
from betimes.ops.desk import Desk
from betimes.store.database import Database
from betimes.store.endpoints import Endpoint
from betimes.store.hints import NoHints
from betimes.testing.postgres import PostgresKit
from betimes.testing.real_clock import RealClock
from chaos.stage import TESTS
from notify_kit import an_endpoint, an_event, deliveries, half
from ops_kit import SHARDS, fetch
from target_kit import a_target

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]
SECONDS = 30.0


async def a_dispatcher_process(dsn: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(TESTS / "crash_dispatcher.py"),
        dsn,
        "never",
        stdout=asyncio.subprocess.DEVNULL,
        cwd=TESTS,
    )


async def any_waits(desk: Desk, endpoints: list[Endpoint]) -> bool:
    found = [one for endpoint in endpoints for one in await deliveries(desk, endpoint)]
    return any(one.state is DeliveryState.WAITING for one in found)


async def test_nothing_is_lost_in_a_storm(postgres: PostgresKit) -> None:
    chance = random.Random(int(os.environ.get("CHAOS_SEED", "7")))
    name = await postgres.create()
    dsn = postgres.dsn(name)
    clock = RealClock()
    database = await Database.open(DatabaseSettings(), dsn=dsn, clock=clock, roll=half)
    desk = Desk(
        database=database,
        clock=clock,
        hints=NoHints(),
        entropy=os.urandom,
        shards=SHARDS,
        tzdata="2026a",
    )
    async with a_target() as steady, a_target() as shaky:
        endpoints = [await an_endpoint(desk, one.url()) for one in (steady, shaky)]
        processes = [await a_dispatcher_process(dsn) for _ in range(2)]
        wanted: set[str] = set()
        kills = 0
        until = time.monotonic() + SECONDS
        try:
            while time.monotonic() < until:
                for _ in range(chance.randrange(1, 20)):
                    wanted.add(to_text("evt", await an_event(desk)))
                shaky.status = chance.choice([200, 200, 500, 503])
                await asyncio.sleep(chance.uniform(0.1, 0.6))
                if chance.random() < 0.25:
                    place = chance.randrange(len(processes))
                    processes[place].kill()
                    await processes[place].wait()
                    processes[place] = await a_dispatcher_process(dsn)
                    kills += 1
            shaky.status = 200
            # What failed waits for its own time; here nobody wants to wait for hours.
            while await any_waits(desk, endpoints):
                await fetch(
                    database,
                    "UPDATE betimes.deliveries SET due_at = now() WHERE due_at > now() RETURNING 1",
                )
                await fetch(
                    database,
                    "UPDATE betimes.mailboxes SET held_until = NULL, next_due_at = now()"
                    " WHERE owner IS NULL RETURNING 1",
                )
                await asyncio.sleep(0.3)
        finally:
            for process in processes:
                process.kill()
                await process.wait()
        for target in (steady, shaky):
            got = [one.headers["webhook-id"] for one in target.received]
            sys.stdout.write(f"{len(wanted)} events, {kills} kills, {len(got)} requests\n")
            assert set(got) == wanted
        assert kills > 3
    await database.close()
    await postgres.drop(name)
