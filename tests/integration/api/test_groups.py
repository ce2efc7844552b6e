"""Creations that come together share a transaction, and nobody notices but the disk."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from api_kit import DEFAULT, Client, Served
from betimes.domain.ids import TenantId
from betimes.ops.acting import Answer, Intent, Told
from betimes.ops.desk import Desk
from betimes.ops.idempotency import IdempotencyKey
from betimes.ops.together import WORTH_A_GROUP, Batch, Together

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_many_creations_share_commits(served: Served, admin: Client) -> None:
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", {**JOB, "priority": n % 10}) for n in range(40)),
        *(admin("POST", "/v1/runs", {"handler": "h", "payload": n}) for n in range(40)),
    )
    assert {answer.status for answer in answers} == {201, 202}
    assert len({answer.json["id"] for answer in answers}) == 80
    assert served.service.jobs.items + served.service.runs.items > 20
    assert served.service.jobs.commits < served.service.jobs.items
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True
    acts = (await admin("GET", "/v1/audit?limit=1000&action=jobs.create")).json["items"]
    assert len(acts) == 40


async def test_one_bad_apple_spoils_nobody(served: Served, admin: Client) -> None:
    names = ["same" if n % 7 == 0 else f"n{n}" for n in range(42)]
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", {**JOB, "name": name}) for name in names)
    )
    assert sorted({answer.status for answer in answers}) == [201, 409]
    assert sum(answer.status == 409 for answer in answers) == 5
    assert served.service.jobs.commits >= 0


async def test_a_repeated_key_in_a_group_has_one_effect(admin: Client) -> None:
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", JOB, idem=f"k{n % 5}") for n in range(40))
    )
    made = {answer.json["id"] for answer in answers if answer.status == 201}
    assert len(made) == 5
    assert {answer.status for answer in answers} <= {201, 409}
    again = await admin("POST", "/v1/jobs", JOB, idem="k3")
    assert again.json["id"] in made
    other = await admin("POST", "/v1/jobs", {**JOB, "priority": 9}, idem="k3")
    assert other.code == "idempotency_key_reused"
    assert len((await admin("GET", "/v1/jobs?limit=1000")).json["items"]) == 5


async def test_one_answer_that_cannot_be_rendered_is_one_failure(served: Served) -> None:
    """The others of its group are committed, and so is everything that comes later."""
    first, sizes = asyncio.Event(), list[int]()

    async def make(_desk: Desk, _tenant: TenantId, items: Sequence[int], _shard: int) -> list[int]:
        sizes.append(len(items))
        if len(sizes) == 1:
            await first.wait()
        return list(items)

    together = Together[int, int](desk=served.desk, make=make)

    async def ask(number: int, *, is_poisoned: bool = False) -> bytes | None:
        key = IdempotencyKey(key=f"poison-{number}", fingerprint=b"f")
        intent = Intent(tenant=DEFAULT, actor={}, action="a", request_id=f"req-{number}", key=key)

        def render(value: int) -> Told:
            if is_poisoned:
                raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
            return Told(answer=Answer(status=201, body=b"%d" % number), resource=str(value))

        async def alone(_: Desk) -> int:
            return number

        return (await together.act(number, intent, alone, render)).answer.body

    async with asyncio.TaskGroup() as group:
        loop = group.create_task(together.run())
        await until(lambda: together._running)
        asked = [group.create_task(ask(0))]
        await until(lambda: sizes == [1])
        asked += [group.create_task(ask(number)) for number in range(1, 5)]
        poisoned = group.create_task(caught(ask(5, is_poisoned=True)))
        asked += [group.create_task(ask(number)) for number in range(6, 8)]
        await until(lambda: len(together._batches.get(DEFAULT, Batch()).waiting) == 7)
        first.set()
        assert [await one for one in asked] == [b"%d" % n for n in range(8) if n != 5]
        assert isinstance(await poisoned, UnicodeEncodeError)
        assert sizes == [1, 7], "they went together"
        assert await ask(9) == b"9"
        assert sizes == [1, 7, 1], "and there are groups still"
        loop.cancel()


async def test_group_commit_outlives_an_answer_that_cannot_be_rendered(served: Served) -> None:
    """It is one request's failure; the loop that serves all the others goes on."""
    blocked, sizes = asyncio.Event(), list[int]()

    async def make(_desk: Desk, _tenant: TenantId, items: Sequence[int], _shard: int) -> list[int]:
        sizes.append(len(items))
        await blocked.wait()
        return list(items)

    together = Together[int, int](desk=served.desk, make=make)

    async def ask(number: int, *, is_poisoned: bool) -> object:
        key = IdempotencyKey(key=f"one-{number}", fingerprint=b"f")
        intent = Intent(tenant=DEFAULT, actor={}, action="a", request_id=f"one-{number}", key=key)

        def render(value: int) -> Told:
            if is_poisoned:
                raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
            return Told(answer=Answer(status=201, body=b"%d" % number), resource=str(value))

        async def alone(_: Desk) -> int:
            return number

        return await together.act(number, intent, alone, render)

    start = asyncio.ensure_future  # noqa: TID251 -- all of them are ended below
    loop = start(together.run())
    await until(lambda: together._running)
    asked = [start(ask(0, is_poisoned=False))]
    await until(lambda: sizes == [1])
    asked += [start(ask(number, is_poisoned=number == 2)) for number in (1, 2)]
    await until(lambda: len(together._batches.get(DEFAULT, Batch()).waiting) == 2)
    blocked.set()
    await asyncio.wait([loop, *asked], return_when=asyncio.FIRST_EXCEPTION)
    ended, _ = await asyncio.wait([loop], timeout=0.5)
    for task in (loop, *asked):
        task.cancel()
    await asyncio.gather(loop, *asked, return_exceptions=True)
    assert not ended, "group commit has ended for the whole node"


async def caught(asked: Awaitable[object]) -> Exception | None:
    try:
        await asked
    except UnicodeEncodeError as error:
        return error
    return None


async def test_the_next_group_waits_for_this_one_or_for_company(served: Served) -> None:
    """Two small groups would halve each other; one that is worth it goes beside the first."""
    gate, sizes = asyncio.Event(), list[int]()

    async def make(_desk: Desk, _tenant: TenantId, items: Sequence[int], _shard: int) -> list[int]:
        sizes.append(len(items))
        await gate.wait()
        return list(items)

    together = Together[int, int](desk=served.desk, make=make)

    async def ask(number: int) -> bytes | None:
        key = IdempotencyKey(key=f"company-{number}", fingerprint=b"f")
        intent = Intent(tenant=DEFAULT, actor={}, action="a", request_id=f"req-{number}", key=key)
        answer = Answer(status=201, body=b"%d" % number)
        done = await together.act(
            number, intent, never, lambda value: Told(answer=answer, resource=str(value))
        )
        return done.answer.body

    async with asyncio.TaskGroup() as group:
        loop = group.create_task(together.run())
        await until(lambda: together._running)
        asked = [group.create_task(ask(0))]
        await until(lambda: sizes == [1])
        asked += [group.create_task(ask(number)) for number in range(1, WORTH_A_GROUP)]
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        assert sizes == [1], "too few to begin beside it"
        asked += [group.create_task(ask(WORTH_A_GROUP))]
        await until(lambda: sizes == [1, WORTH_A_GROUP])
        asked += [group.create_task(ask(1_000 + number)) for number in range(3 * WORTH_A_GROUP)]
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        assert sizes == [1, WORTH_A_GROUP], "never more than two"
        gate.set()
        answers = await asyncio.gather(*asked)
        loop.cancel()
    assert len(set(answers)) == len(asked)
    assert sum(sizes) == len(asked)


async def never(_desk: Desk) -> int:
    raise AssertionError("nobody goes alone")


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 -- what it waits for is told by no event
            await asyncio.sleep(0.001)  # noqa: TID251 -- the database has to answer first


async def test_the_same_names_from_two_sides_do_not_block_each_other(admin: Client) -> None:
    names = [f"n{n}" for n in range(40)]
    answers = await asyncio.gather(
        *(admin("POST", "/v1/jobs", {**JOB, "name": name}) for name in [*names, *reversed(names)])
    )
    assert sorted(answer.status for answer in answers) == [201] * 40 + [409] * 40
