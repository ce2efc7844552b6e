"""A coroutine on an event loop of its own, in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


async def run_beside(work: Work, *, name: str) -> None:
    """Run `work` in a thread until it ends or we are cancelled; its error becomes ours.

    When this returns, the thread has ended too. It is a daemon all the same: if the process is
    torn down without asking anybody, it must not stand in the way.
    """
    ours = asyncio.get_running_loop()
    ended: asyncio.Future[None] = ours.create_future()
    theirs: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []
    wanted = threading.Event()
    wanted.set()

    async def live() -> None:
        me = asyncio.current_task()
        if me is not None:
            theirs.append((asyncio.get_running_loop(), me))
        if wanted.is_set():
            await work()

    def thread() -> None:
        fault: BaseException | None = None
        try:
            asyncio.run(live())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 -- carried over to whoever waits for us
            fault = error
        if not ours.is_closed():
            ours.call_soon_threadsafe(_resolve, ended, fault)

    threading.Thread(target=thread, name=name, daemon=True).start()
    try:
        await asyncio.shield(ended)
    finally:
        wanted.clear()
        for loop, task in theirs:
            if not ended.done():
                loop.call_soon_threadsafe(task.cancel)
        if not ended.done():
            await asyncio.wait([ended])


def _resolve(ended: "asyncio.Future[None]", fault: BaseException | None) -> None:
    if ended.done():
        return
    if fault is None:
        ended.set_result(None)
    else:
        ended.set_exception(fault)
