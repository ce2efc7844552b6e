"""The other end of `processes`: what runs in a spawned child."""

import importlib
import signal
import time
from datetime import datetime, timedelta
from functools import reduce
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from betimes.domain.outcome import Outcome
from betimes.domain.spec import RunSpec
from betimes.store.parcels import LeasedParcel, WantedRun
from betimes.worker.context import Context
from betimes.worker.returned import failure_of, outcome_of


class Order(NamedTuple):
    """Which function to call, and for what."""

    module: str
    name: str
    about: tuple[WantedRun, LeasedParcel, RunSpec, datetime]


def serve(pipe: "Connection[Any, Any]") -> None:
    """Execute orders until the other end is gone."""
    # An interrupt from the terminal reaches the whole group; only the worker acts upon it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            order: Order = pipe.recv()
        except EOFError:
            return
        pipe.send(execute(order))


def execute(order: Order) -> Outcome:
    """Call the function, and make a value of whatever happens."""
    began = time.perf_counter()
    started_at = order.about[3]

    def now() -> datetime:
        return started_at + timedelta(seconds=time.perf_counter() - began)

    try:
        module = importlib.import_module(order.module)
        function = reduce(getattr, order.name.split("."), module)
        return outcome_of(function(Context(*order.about, now)))  # type: ignore[operator]
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- the attempt has failed, that is all
        return failure_of(error)
