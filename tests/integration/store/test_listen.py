"""Hints arrive; when the connection is lost a new one is made and everybody is told to look."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from betimes.config.settings import DatabaseSettings
from betimes.domain.errors import BadSetting
from betimes.store.database import Database
from betimes.store.listen import PROBE_SECONDS, Listener
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.testing import ManualClock, Signal
from betimes.testing.postgres import socket_of, through
from betimes.testing.proxy import FaultProxy
from store_kit import IMPATIENT, end_sessions, eventually, half, owner, soon

SQL = load("server")
CHANNELS = ("betimes_parcels", "betimes_jobs")


class Ears:
    """Everything a listener reports, as signals."""

    def __init__(self) -> None:
        self.heard: Signal[tuple[str, str]] = Signal()
        self.lost: Signal[BaseException] = Signal()

    async def told_to_look(self) -> None:
        assert {await self.heard.wait() for _ in CHANNELS} == {(name, "") for name in CHANNELS}


@asynccontextmanager
async def listening(dsn: str, clock: ManualClock) -> AsyncIterator[Ears]:
    ears = Ears()
    listener = Listener(
        dsn=dsn,
        settings=DatabaseSettings(**IMPATIENT),
        channels=CHANNELS,
        hear=lambda channel, payload: ears.heard.send((channel, payload)),
        clock=clock,
        roll=half,
        on_lost=ears.lost.send,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(listener.run())
        yield ears
        running.cancel()


async def sleeping(clock: ManualClock) -> None:
    async def somebody() -> bool:
        return clock.sleepers > 0

    await eventually(somebody, what="the listener waits")


async def hint(dsn: str, payload: str) -> None:
    async with owner(dsn) as connection:
        await connection.execute(SQL["send_hint"].text, CHANNELS[0], payload)


async def test_hints_arrive_with_their_payload(dsn: str, clock: ManualClock) -> None:
    async with listening(dsn, clock) as ears:
        await ears.told_to_look()
        await hint(dsn, "7")
        assert await ears.heard.wait() == (CHANNELS[0], "7")


async def test_the_store_can_send_hints(dsn: str, clock: ManualClock, database: Database) -> None:
    async with listening(dsn, clock) as ears:
        await ears.told_to_look()
        await database.many(SQL["send_hint"], lane=Lane.API, channel=CHANNELS[1], payload="3")
        assert await ears.heard.wait() == (CHANNELS[1], "3")


async def test_an_ended_session_is_replaced_and_everybody_told_to_look(
    dsn: str, clock: ManualClock
) -> None:
    async with listening(dsn, clock) as ears:
        for _ in range(2):
            await ears.told_to_look()
            await end_sessions(dsn)
            await ears.lost.wait()
            await sleeping(clock)
            clock.advance(1)
        await ears.told_to_look()
        await hint(dsn, "again")
        assert await ears.heard.wait() == (CHANNELS[0], "again")


async def test_a_peer_that_vanished_is_noticed_by_asking(dsn: str, clock: ManualClock) -> None:
    async with (
        FaultProxy(socket_of(dsn)) as proxy,
        listening(through(dsn, proxy.port), clock) as ears,
    ):
        await ears.told_to_look()
        await sleeping(clock)
        clock.advance(PROBE_SECONDS)  # asked, and answered
        await sleeping(clock)
        proxy.change(half_open=True)
        clock.advance(PROBE_SECONDS)
        await ears.lost.wait()
        proxy.heal()
        await sleeping(clock)
        clock.advance(1)
        await ears.told_to_look()


async def test_pauses_grow_while_the_database_is_away(dsn: str, clock: ManualClock) -> None:
    async with FaultProxy(socket_of(dsn)) as proxy:
        proxy.change(refuse=True)
        async with listening(through(dsn, proxy.port), clock) as ears:
            await ears.lost.wait()
            for pause in (0.1, 0.2, 0.4):  # doubled each time, halved by the die
                await sleeping(clock)
                clock.advance(pause * 0.99)
                with pytest.raises(TimeoutError):
                    await ears.lost.wait(patience=0.02)
                clock.advance(pause * 0.02)
                await ears.lost.wait()
            proxy.heal()
            await sleeping(clock)
            clock.advance(10)
            await ears.told_to_look()


def test_a_pooler_is_no_address_for_listening(clock: ManualClock) -> None:
    with pytest.raises(BadSetting, match="direct address"):
        Listener(
            dsn="postgresql://user@host/name?pgbouncer=true",
            settings=DatabaseSettings(),
            channels=CHANNELS,
            hear=lambda _channel, _payload: None,
            clock=clock,
            roll=half,
        )


async def test_a_listener_that_is_cancelled_leaves_no_session(dsn: str, clock: ManualClock) -> None:
    async with listening(dsn, clock) as ears:
        await soon(ears.told_to_look())

    async def nobody() -> bool:
        async with owner(dsn) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            return bool(await connection.fetchval(query) == 1)

    await eventually(nobody, what="the listener's session is closed")
