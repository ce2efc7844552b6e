"""LISTEN as a hint, never as truth.

The listener holds one direct connection. When it is lost, a new one is made with growing pauses,
and since anything may have been said meanwhile, everybody is told to look. With every notification
dropped, everything still happens, at most one poll later.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import asyncpg

from betimes.config.settings import DatabaseSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import BadSetting
from betimes.rhythm import first_of
from betimes.store.database import Roll
from betimes.store.faults import LOST
from betimes.store.pool import Address, Session, close, connect

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.1, 5.0
PROBE_SECONDS = 15.0
"""The kernel's own probes find a peer that vanished within about ten seconds; this one is for those
that they cannot see, such as a proxy that lost its other side."""

Hear = Callable[[str, str], None]
"""Called with channel and payload; an empty payload means: something may have been missed."""


class Listener:
    """Keeps listening, whatever happens to the connection."""

    def __init__(
        self,
        *,
        dsn: str,
        settings: DatabaseSettings,
        channels: Iterable[str],
        hear: Hear,
        clock: Clock,
        roll: Roll,
        on_lost: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self._address = Address.of(dsn)
        if self._address.pooled:
            raise BadSetting("LISTEN needs a direct address of the database, got one with a pooler")
        self._settings = settings
        self._channels = tuple(channels)
        self._hear = hear
        self._clock = clock
        self._roll = roll
        self._on_lost = on_lost
        self.listening = asyncio.Event()

    async def run(self) -> None:
        """Listen until cancelled."""
        failures = 0
        while True:
            try:
                await self._listen()
            except (asyncpg.PostgresError, *LOST) as fault:
                failures = 0 if self.listening.is_set() else failures + 1
                self.listening.clear()
                self._on_lost(fault)
            pause = min(PAUSE_SECONDS * 2.0**failures, PAUSE_SECONDS_MAX)
            await self._clock.sleep(pause * self._roll())

    async def _listen(self) -> None:
        connection = await connect(self._address, self._settings)
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            for channel in self._channels:
                await connection.add_listener(channel, self._notified)
            self.listening.set()
            for channel in self._channels:
                self._hear(channel, "")
            while not lost.is_set():
                await self._probe(connection, lost)
            raise ConnectionResetError("the listening connection was closed")
        finally:
            await close(connection)

    async def _probe(self, connection: Session, lost: asyncio.Event) -> None:
        """Wait a while, then ask for a sign of life: a peer can vanish without closing."""
        if await first_of(lost.wait(), self._clock.sleep(PROBE_SECONDS)):
            patience = self._settings.connect_timeout.total_seconds()
            await connection.execute("SELECT 1", timeout=patience)

    def _notified(self, _connection: Any, _pid: int, channel: str, payload: object) -> None:
        self._hear(channel, str(payload))
