"""Handlers of this worker in threads."""

from collections.abc import Coroutine
from typing import Any

from betimes.executing.threads import Threads as Pool
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler


class Threads(Pool):
    """Threads that know how handlers are called."""

    def __call__(self, handler: Handler) -> Call:
        """How a handler is called in a thread."""

        def call(context: Context) -> Coroutine[Any, Any, object]:
            return self.run(handler.function, context)

        return call
