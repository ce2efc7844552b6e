"""Carries what handlers say to the service: in order, in batches, before the end is reported."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, NotFound, Unavailable
from betimes.rhythm import within
from betimes.runtime.line import Notes
from betimes.runtime.saying import Said, Saying

EVERY_SECONDS = 0.2
"""How long words wait for company."""
LINES_AT_ONCE = 500
LAST_WORDS = timedelta(seconds=40)
"""How long the report of an end waits for what was said before it: while the service is away it has
nobody to be told to, and that lasts no longer than a restart."""
BACK_OFF_SECONDS = 1.0


class Courier:
    """One for all attempts of a worker."""

    def __init__(self, *, notes: Notes, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._notes = notes
        self._clock = clock
        self._loop = loop
        self._dirty: dict[Saying, None] = {}
        """Who has said something; nothing is kept for the others."""
        self._waiting = asyncio.Event()
        self._home = threading.get_ident()

    def wake(self, saying: Saying) -> None:
        """Somebody has said something; called from any thread."""
        if threading.get_ident() == self._home:
            self._note(saying)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._note, saying)

    def _note(self, saying: Saying) -> None:
        self._dirty[saying] = None
        self._waiting.set()

    async def run(self) -> None:
        """Carry until cancelled."""
        while True:
            await self._waiting.wait()
            await self._clock.sleep(EVERY_SECONDS)
            if not await self.tick():
                await self._clock.sleep(BACK_OFF_SECONDS)

    async def tick(self) -> bool:
        """Carry everything that waits; False when the service did not answer."""
        self._waiting.clear()
        for saying in list(self._dirty):
            try:
                await self.carry(saying)
            except Unavailable:
                self._waiting.set()
                return False
        return True

    async def last_words(self, saying: Saying) -> None:
        """Carry what is left of one attempt, with some patience; then forget it."""
        try:
            async with within(LAST_WORDS, "last words"):
                await self._carry_until_heard(saying)
        except Unavailable:
            pass  # the end of the run matters more than its last line
        self._dirty.pop(saying, None)

    async def _carry_until_heard(self, saying: Saying) -> None:
        while True:
            try:
                await self.carry(saying)
            except Unavailable:
                await self._clock.sleep(BACK_OFF_SECONDS)
            else:
                return

    async def carry(self, saying: Saying) -> None:
        """Carry what one attempt has said."""
        async with saying.telling:
            self._dirty.pop(saying, None)
            while said := saying.take():
                try:
                    await self._tell(saying.lease, said)
                except (FencedOut, NotFound):
                    return  # nobody is interested any more
                except BaseException:
                    saying.give_back(said)
                    self._dirty[saying] = None
                    raise

    async def _tell(self, lease: Any, said: Said) -> None:
        """Piece by piece; what was told is taken out, so that nothing is told twice."""
        if said.checkpoint is not None:
            await self._notes.checkpoint(lease, said.checkpoint)
            said.checkpoint = None
        if said.progress is not None:
            await self._notes.progress(lease, said.progress)
            said.progress = None
        while said.lines:
            await self._notes.log(lease, said.lines[:LINES_AT_ONCE])
            del said.lines[:LINES_AT_ONCE]
