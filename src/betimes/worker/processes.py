"""Handlers of this worker in processes of their own."""

from collections.abc import Coroutine
from typing import Any

from betimes.executing.child import Order
from betimes.executing.processes import Processes as Pool
from betimes.worker.child import ENTRY
from betimes.worker.context import Context
from betimes.worker.handlers import Call, Handler


class Processes(Pool):
    """Children that know how handlers are called."""

    def __call__(self, handler: Handler) -> Call:
        """How a handler is called in a process."""
        name = f"{handler.function.__module__}:{handler.function.__qualname__}"

        def call(context: Context) -> Coroutine[Any, Any, object]:
            return self.run(Order(ENTRY, (name, context.portable())), is_held=context.is_held)

        return call
