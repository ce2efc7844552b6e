"""Handlers of this worker in threads."""

from collections.abc import Awaitable

from betimes.executing.threads import Threads as Pool
from betimes.worker.context import Context
from betimes.worker.handlers import Handler, Hooks


class NoHooks:
    """Nothing is done around the call."""

    def prepare(self, _: Context) -> bool:
        """It can be called at once."""
        return True

    async def ready(self, _: Context) -> None:
        """Nothing has to be waited for."""

    def conclude(self, _: Context) -> Awaitable[None] | None:
        """Nothing is left to do."""
        return None


class Threads(Pool):
    """Threads that know how handlers are called."""

    def __call__(self, handler: Handler) -> "InThread":
        """How a handler is called in a thread."""
        return InThread(self, handler)


class InThread:
    """A call in a thread, with what is done on the event loop around it."""

    __slots__ = ("function", "hooks", "pool")

    def __init__(self, pool: Pool, handler: Handler) -> None:
        self.pool = pool
        self.function = handler.function
        self.hooks: Hooks = NO_HOOKS if handler.hooks is None else handler.hooks

    async def __call__(self, context: Context) -> object:
        """Call it, for whoever has an asyncio task to wait in."""
        if not self.hooks.prepare(context):
            await self.hooks.ready(context)
        try:
            return await self.pool.run(self.function, context)
        finally:
            if (rest := self.hooks.conclude(context)) is not None:
                await rest


NO_HOOKS = NoHooks()
