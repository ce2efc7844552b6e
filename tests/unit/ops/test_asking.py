"""A question that many ask at the same moment is asked once."""

import asyncio

from betimes.domain.errors import CyclicGraph, Refused, Unavailable
from betimes.ops.asking import Asking


class Source:
    """Answers when it is let, and counts who asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.gate = asyncio.Event()

    async def find(self) -> int:
        self.asked += 1
        await self.gate.wait()
        return self.asked


async def pass_the_turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait


async def test_those_who_ask_meanwhile_share_the_answer() -> None:
    asking, source = Asking[str, int](), Source()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asking.ask("a", source.find)) for _ in range(5)]
        other = group.create_task(asking.ask("b", source.find))
        await pass_the_turn()
        source.gate.set()
    assert len({task.result() for task in tasks}) == 1
    assert source.asked == 2
    assert await asking.ask("a", source.find) == 3
    assert other.done()


async def test_those_who_wait_hear_the_error_and_do_not_ask_after_it() -> None:
    asking, asked, gate = Asking[str, int](), 0, asyncio.Event()

    async def fail() -> int:
        nonlocal asked
        asked += 1
        await gate.wait()
        raise Unavailable("gone")

    async def open_the_gate() -> None:
        await pass_the_turn()
        gate.set()

    *heard, _ = await asyncio.gather(
        *(asking.ask("a", fail) for _ in range(3)), open_the_gate(), return_exceptions=True
    )
    assert [type(one) for one in heard] == [Unavailable] * 3
    assert asked == 1


async def test_one_who_is_called_away_leaves_nobody_waiting() -> None:
    asking, source = Asking[str, int](), Source()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(asking.ask("a", source.find))
        await pass_the_turn()
        others = [group.create_task(asking.ask("a", source.find)) for _ in range(3)]
        await pass_the_turn()
        first.cancel()
        await pass_the_turn()
        source.gate.set()
    assert [one.result() for one in others] == [2, 2, 2]
    assert first.cancelled()


async def test_one_of_those_who_wait_may_go() -> None:
    asking, source = Asking[str, int](), Source()
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(asking.ask("a", source.find)) for _ in range(2))
        await pass_the_turn()
        second.cancel()
        await pass_the_turn()
        source.gate.set()
    assert first.result() == 1
    assert second.cancelled()


async def test_what_was_forgotten_is_asked_anew() -> None:
    asking, source = Asking[str, int](), Source()
    async with asyncio.TaskGroup() as group:
        for asked in (1, 2, 2, 3):
            if asked == 3:
                asking.forget_all()
            elif source.asked < asked:
                asking.forget("a")
            group.create_task(asking.ask("a", source.find))
            await pass_the_turn()
            assert source.asked == asked
        source.gate.set()


async def test_each_who_waits_has_an_error_of_its_own() -> None:
    """On its way up an error is told where it was; others hear what was found."""
    asking, gate = Asking[str, int](), asyncio.Event()

    async def find() -> int:
        await gate.wait()
        raise CyclicGraph("round and round", cycle=("a", "b"), pointer="/needs")

    async def ask(place: int) -> Refused:
        try:
            await asking.ask("a", find)
        except Refused as refused:
            refused.pointer = f"/items/{place}{refused.pointer}"
            return refused
        raise AssertionError("it was refused")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(place)) for place in range(3)]
        await pass_the_turn()
        gate.set()
    heard = [task.result() for task in tasks]
    assert [one.pointer for one in heard] == [f"/items/{place}/needs" for place in range(3)]
    assert {(str(one), one.code, type(one)) for one in heard} == {
        ("round and round", heard[0].code, CyclicGraph)
    }
    assert [one.cycle for one in heard if isinstance(one, CyclicGraph)] == [("a", "b")] * 3
