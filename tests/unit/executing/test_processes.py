"""However large an order or an answer is, and however slow the child: the event loop goes on.

The child waits for something that only a loop that turns will do, so a loop that is blocked never
ends these tests, and one that turns always does.
"""

import asyncio
import os
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

from betimes.domain.outcome import Failed
from betimes.executing import processes
from betimes.executing.child import Order, Talk, Told, serve
from betimes.executing.processes import Processes

MEGABYTE = 1 << 20
PATIENCE_SECONDS = 60


@pytest.fixture
def door(tmp_path: Path) -> Path:
    """A named pipe: whoever reads from it waits until somebody writes."""
    path = tmp_path / "door"
    os.mkfifo(path)
    return path


def starts_slowly(door: str, pipe: "Connection[Any, Any]") -> None:
    """A child that reads no order before it was let in."""
    Path(door).read_bytes()
    serve(pipe)


def answers_in_two_parts(door: str, pipe: "Connection[Any, Any]") -> None:
    """A child whose answer is half there when it is asked to go on."""
    order = pipe.recv()
    answer = bytes(ForkingPickler.dumps(Told(order.arguments[0])))
    sent = len(answer).to_bytes(4, "big") + answer
    _write_all(pipe.fileno(), sent[: MEGABYTE // 2])
    Path(door).read_bytes()
    _write_all(pipe.fileno(), sent[MEGABYTE // 2 :])


def _write_all(pipe: int, content: bytes) -> None:
    while content:
        content = content[os.write(pipe, content) :]


def length(_: Talk, content: bytes) -> int:
    """How much it was."""
    return len(content)


def says_nothing_and_stays(_: Talk, content: bytes) -> None:
    """A handler that does not listen."""
    while content:
        pass


async def let_in(door: Path) -> None:
    """What the loop does meanwhile: opens the door as soon as somebody stands there."""
    while True:
        try:
            opened = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody yet
            await asyncio.sleep(0)  # noqa: TID251 -- one turn of the loop
        else:
            os.close(opened)
            return


def held() -> bool:
    """The lease is good."""
    return True


@pytest.mark.parametrize("child", [starts_slowly, answers_in_two_parts])
async def test_a_large_order_or_answer_does_not_block_the_loop(
    door: Path, monkeypatch: pytest.MonkeyPatch, child: Any
) -> None:
    monkeypatch.setattr(processes, "serve", partial(child, str(door)))
    pool, content = Processes(1), os.urandom(MEGABYTE)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            called = group.create_task(
                pool.run(Order(f"{__name__}:length", (content,)), is_held=held)
            )
            group.create_task(let_in(door))
        expected = len(content) if child is starts_slowly else content
        assert called.result() == expected
    finally:
        await asyncio.to_thread(pool.close)


async def test_a_child_that_never_starts_is_killed_when_nobody_wants_it_any_more(
    door: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "serve", partial(starts_slowly, str(door)))
    pool = Processes(1)
    begun = asyncio.Event()
    async with asyncio.timeout(PATIENCE_SECONDS):
        order = Order(f"{__name__}:length", (bytes(MEGABYTE),))
        call = asyncio.create_task(pool.run(order, is_held=held, begun=lambda _: begun.set()))  # noqa: TID251
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert pool._idle == []


async def test_what_is_said_to_a_child_that_does_not_listen_blocks_nobody() -> None:
    pool = Processes(1)
    says: list[processes.Say] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        order = Order(f"{__name__}:says_nothing_and_stays", (b"x",))
        call = asyncio.create_task(pool.run(order, is_held=held, begun=says.append))  # noqa: TID251
        while not says:  # noqa: ASYNC110 -- a thread starts the process
            await asyncio.sleep(0)  # noqa: TID251
        for _ in range(4):
            says[0](bytes(MEGABYTE))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        says[0]("it has ended")


async def test_a_child_that_dies_before_it_has_read_its_order_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "serve", dies)
    pool = Processes(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await pool.run(Order(f"{__name__}:length", (bytes(MEGABYTE),)), is_held=held)
    assert isinstance(answer, Failed)
    assert answer.error.type == "ProcessDied"


def dies(_: "Connection[Any, Any]") -> None:
    """A child that ends at once."""
    os._exit(3)
