"""Threads: calls that block run side by side; the event loop is woken once for many ends."""

import asyncio
import threading
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from betimes.domain.errors import LeaseOver
from betimes.executing.threads import Call, Threads

CALLS = 20
LIMIT = 20
name: ContextVar[int] = ContextVar("name")


class Attempt:
    """As much of an attempt as threads need."""

    def __init__(self, number: int = 0, *, held: bool = True) -> None:
        self.number = number
        self.lingers = False
        self._held = held

    def is_held(self) -> bool:
        return self._held


class Ends:
    """Hears ends and is told when there are enough."""

    def __init__(self, wanted: int) -> None:
        self.told: list[tuple[int, object, BaseException | None]] = []
        self.enough = asyncio.Event()
        self._wanted = wanted

    def hear(self, call: Call, value: object, fault: BaseException | None) -> None:
        assert isinstance(call.context, Attempt)
        self.told.append((call.context.number, value, fault))
        if len(self.told) == self._wanted:
            self.enough.set()


async def submit(threads: Threads, function: Any, ends: Ends, count: int) -> None:
    """Hand calls over and wait for all ends."""
    for number in range(count):
        threads.submit(Call(function, Attempt(number), copy_context(), ends.hear))
    async with asyncio.timeout(LIMIT):
        await ends.enough.wait()
    threads.close()


async def test_calls_that_block_run_side_by_side() -> None:
    """Each waits for all the others: with one thread less, none would ever end."""
    together, ends = threading.Barrier(CALLS), Ends(CALLS)
    await submit(
        Threads(CALLS, freed=lambda _: None), lambda _: together.wait(LIMIT) >= 0, ends, CALLS
    )
    assert [fault for _, _, fault in ends.told] == [None] * CALLS


async def test_there_are_never_more_threads_than_allowed() -> None:
    running, most, lock = 0, 0, threading.Lock()
    busy = threading.Event()

    def call(_: Attempt) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        busy.wait(0.005)
        with lock:
            running -= 1

    await submit(Threads(3, freed=lambda _: None), call, Ends(CALLS), CALLS)
    assert most == 3


async def test_the_event_loop_is_woken_once_for_many_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread makes all calls while the loop does not look; it is told of the first end."""
    threads, ends, woken = Threads(1, freed=lambda _: None), Ends(CALLS), 0
    loop, done = asyncio.get_running_loop(), threading.Semaphore(0)
    wake = loop.call_soon_threadsafe

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal woken
        woken += 1
        return wake(*given, **named)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for number in range(CALLS):
        threads.submit(Call(lambda _: done.release(), Attempt(number), copy_context(), ends.hear))
    for _ in range(CALLS):
        done.acquire(timeout=LIMIT)  # this blocks the event loop on purpose
    async with asyncio.timeout(LIMIT):
        await ends.enough.wait()
    threads.close()
    assert [number for number, _, _ in ends.told] == list(range(CALLS))
    assert woken <= 2, "once, and once more for an end that came while they were collected"


async def test_each_call_has_variables_of_its_own() -> None:
    def call(attempt: Attempt) -> int:
        before = name.get(-1)
        name.set(attempt.number)
        return before

    ends = Ends(CALLS)
    await submit(Threads(2, freed=lambda _: None), call, ends, CALLS)
    assert {value for _, value, _ in ends.told} == {-1}


async def test_nothing_begins_without_its_lease_or_anybody_who_waits() -> None:
    freed: list[int] = []
    called: list[int] = []
    threads, ends = Threads(1, freed=freed.append), Ends(2)
    given_up = Attempt(1)
    given_up.lingers = True
    for attempt in (Attempt(0, held=False), given_up):
        threads.submit(
            Call(lambda one: called.append(one.number), attempt, copy_context(), ends.hear)
        )
    async with asyncio.timeout(LIMIT):
        await ends.enough.wait()
    threads.close()
    assert (called, freed) == ([], [1])
    assert all(isinstance(fault, LeaseOver) for _, _, fault in ends.told)
