"""Workers: lease parcels, execute runs, report outcomes."""

from betimes.worker.context import Context
from betimes.worker.handlers import Handler, Handlers, Kind
from betimes.worker.service import Chance, Worker
from betimes.worker.signals import WorkerSignals

__all__ = ["Chance", "Context", "Handler", "Handlers", "Kind", "Worker", "WorkerSignals"]
