"""Driving a world in plain tests and in async ones: what handlers await is awaited for them."""

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Driver:
    """Runs generators that yield awaitables, on a loop of its own or on the test's."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Let go of the loop."""
        if self._runner is not None:
            self._runner.close()

    def drive(self, what: Generator[Any, Any, T]) -> T:
        """In a plain test."""
        try:
            wanted = next(what)
            while True:
                runner = self._own_loop(wanted)
                try:
                    value = runner.run(_coroutine(wanted))
                except BaseException as error:  # noqa: BLE001 -- the handler's own, given back to it
                    wanted = what.throw(error)
                else:
                    wanted = what.send(value)
        except StopIteration as done:
            found: T = done.value
            return found

    def _own_loop(self, coroutine: Any) -> asyncio.Runner:
        """A coroutine needs a loop of ours; beside a running one there can be none."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._runner = self._runner or asyncio.Runner()
            return self._runner
        coroutine.close()
        raise RuntimeError("expected `await h.arun_until_idle()` and the like in an async test")

    @staticmethod
    async def adrive(what: Generator[Any, Any, T]) -> T:
        """In an async test."""
        try:
            wanted = next(what)
            while True:
                try:
                    value = await wanted
                except BaseException as error:  # noqa: BLE001 -- as above
                    wanted = what.throw(error)
                else:
                    wanted = what.send(value)
        except StopIteration as done:
            found: T = done.value
            return found


async def _coroutine(awaitable: Any) -> Any:
    return await awaitable
