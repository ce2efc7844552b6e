"""Workers: lease parcels, execute runs, report outcomes.

`runner` and what it consists of need no server: they execute the runs of whatever transport there
is. `service` is the worker whose transport is the database.
"""

from typing import TYPE_CHECKING, Any

from betimes.worker.context import Context
from betimes.worker.handlers import Handler, Handlers, Kind
from betimes.worker.signals import WorkerSignals

if TYPE_CHECKING:
    from betimes.worker.service import Chance, Worker

__all__ = ["Chance", "Context", "Handler", "Handlers", "Kind", "Worker", "WorkerSignals"]


def __getattr__(name: str) -> Any:
    """The parts that need the server's packages, when they are asked for."""
    if name in {"Chance", "Worker"}:
        from betimes.worker import service  # noqa: PLC0415

        return getattr(service, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
