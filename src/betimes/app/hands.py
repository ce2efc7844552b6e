"""The worker of a user's app as a process: from `module:app` to an exit code.

Over HTTP nothing of the server is loaded: the base install is enough.
"""

import asyncio
import importlib
import os
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import betimes
from betimes.app.clock import SystemClock
from betimes.app.dice import Dice
from betimes.app.signals import hearing_signals
from betimes.domain.clock import Clock
from betimes.domain.errors import BadSetting, SchedulerError
from betimes.rhythm import Stopping
from betimes.runtime.http_line import http_lines
from betimes.runtime.logs import ship_logs
from betimes.runtime.plain_log import PlainLog
from betimes.runtime.worker import Worker, WorkerOptions
from betimes.sdk.application import App
from betimes.sdk.failures import ClientError
from betimes.sdk.way import Way
from betimes.telemetry import Telemetry

if TYPE_CHECKING:
    from betimes.config import Settings

OK, FAILED = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HandsOptions:
    """What `betimes worker run` was told."""

    place: str
    queues: tuple[str, ...] = ("default",)
    concurrency: int = 10
    processes: int = 2
    grace: timedelta = timedelta(seconds=30)
    name: str | None = None
    way: Callable[[App], Way] = App.way
    """The way to the service, unless it works on the database."""
    tenant: str | None = None
    log_level: str = "info"


class Runs(Protocol):
    """A worker, however it reaches the service."""

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop."""
        ...


def load_app(place: str) -> App:
    """The app at `module:name`, looked for from the current folder on.

    Raises:
        BadSetting: there is none, with what is there instead.

    """
    module, _, name = place.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, module):
            missing = f"expected a module {module!r} to import from {here}, got none"
            raise BadSetting(missing) from error
        raise BadSetting(f"expected to import {module!r}, got\n{_where(error)}") from error
    found = getattr(loaded, name or "app", None)
    if not isinstance(found, App):
        apps = sorted(one for one, value in vars(loaded).items() if isinstance(value, App))
        there = ", ".join(f"{module}:{one}" for one in apps) or "none"
        raise BadSetting(
            f"expected an app at {place!r}, got {type(found).__name__}; there is {there}"
        )
    return found


def _is_part_of(name: str | None, module: str) -> bool:
    return name is not None and (module == name or module.startswith(f"{name}."))


def _where(error: Exception) -> str:
    """What went wrong in somebody's module and where, without the machinery of importing."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [one for one in frames if one.filename != __file__ and "importlib" not in one.filename]
    return "".join(
        [*traceback.format_list(theirs), *traceback.format_exception_only(error)]
    ).rstrip()


async def work(
    options: HandsOptions, *, settings: "Settings | None" = None, stream: TextIO = sys.stderr
) -> int:
    """Run a worker until it is told to stop; with settings it works on their database."""
    clock, dice, stopping = SystemClock(), Dice(), Stopping()
    telemetry = Telemetry(clock=clock, handlers=[PlainLog(stream, clock, options.log_level)])
    app = load_app(options.place)
    ship_logs()
    with hearing_signals(stopping) as interrupts:
        async with _working(
            options, app, settings=settings, clock=clock, dice=dice, telemetry=telemetry
        ) as worker:
            try:
                ended = await _until_hastened(worker, stopping)
            except* (SchedulerError, ClientError) as group:
                raise _first(group) from group
    return OK if ended else interrupts.exit_code


async def _until_hastened(worker: Runs, stopping: Stopping) -> bool:
    """Whether it came to an orderly end."""
    async with asyncio.TaskGroup() as group:
        working = group.create_task(worker.run(stopping), name="worker")
        hastened = group.create_task(stopping.wait_hastened(), name="hastened")
        await asyncio.wait([working, hastened], return_when=asyncio.FIRST_COMPLETED)
        hastened.cancel()
        working.cancel()
    return not working.cancelled()


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def worker_options(options: HandsOptions) -> WorkerOptions:
    """What was told, and what this process knows about itself."""
    host = socket.gethostname()
    return WorkerOptions(
        name=options.name or f"{host}-{os.getpid()}",
        queues=options.queues,
        concurrency=options.concurrency,
        processes=options.processes,
        grace=options.grace,
        host=host,
        pid=os.getpid(),
        version=betimes.__version__,
    )


@asynccontextmanager
async def _working(
    options: HandsOptions,
    app: App,
    *,
    settings: "Settings | None",
    clock: Clock,
    dice: Dice,
    telemetry: Telemetry,
) -> AsyncIterator[Runs]:
    """A worker over HTTP, or with settings on their database."""
    if settings is None:
        yield Worker(
            app=app,
            open_line=http_lines(options.way(app)),
            clock=clock,
            roll=dice.roll,
            options=worker_options(options),
            telemetry=telemetry,
        )
        return
    # The server's parts, needed only here.
    from betimes.app.direct_desk import grounds  # noqa: PLC0415
    from betimes.app.task_worker import TaskWorker  # noqa: PLC0415

    async with grounds(settings, clock=clock, dice=dice, tenant=options.tenant) as stands_on:
        yield TaskWorker(
            app=app,
            grounds=stands_on,
            clock=clock,
            options=worker_options(options),
            telemetry=telemetry,
        )
