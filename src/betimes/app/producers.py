"""Who may enqueue by SQL, changed on the database itself: no API is needed."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from betimes.app import database as databases
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.config import Settings
from betimes.store.database import Database

T = TypeVar("T")


async def on_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Open the database of the settings for one piece of work."""
    clock, dice = SystemClock(), Dice()
    async with databases.located(settings, clock=clock, dice=dice) as place:
        await databases.require_schema(settings, place)
        async with databases.opened(settings, place, clock=clock, dice=dice) as database:
            return await work(database)
