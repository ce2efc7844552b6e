"""Reads that come together share a transaction, and everybody gets what was asked for."""

import asyncio

import pytest

from api_kit import Client, Served
from betimes.domain.errors import Unavailable
from betimes.domain.ids import JobId, from_text
from betimes.ops.shared_reads import SLOTS, SharedReads
from betimes.store.jobs import read_jobs

JOB = {"schedule": "every 1h", "handler": "h"}


async def test_reads_share_transactions_and_not_answers(served: Served, admin: Client) -> None:
    names = [f"n{number}" for number in range(8)]
    made = {(await admin("POST", "/v1/jobs", {**JOB, "name": n})).json["id"]: n for n in names}
    missing = "job_" + "0" * 26
    wanted = [*made, missing] * 8
    before = served.service.job_reads.transactions
    answers = await asyncio.gather(*(admin("GET", f"/v1/jobs/{one}") for one in wanted))
    for one, answer in zip(wanted, answers, strict=True):
        assert (answer.status, answer.json.get("name")) == (
            (404, None) if one == missing else (200, made[one])
        )
    assert served.service.job_reads.transactions - before < len(wanted)


async def test_a_read_sees_what_was_committed_before_it_was_asked_for(admin: Client) -> None:
    job = (await admin("POST", "/v1/jobs", JOB)).json["id"]

    async def edit_and_read(priority: int) -> None:
        edited = await admin("PATCH", f"/v1/jobs/{job}", {"priority": priority})
        if edited.status == 200:
            found = await admin("GET", f"/v1/jobs/{job}")
            assert found.json["revision"] >= edited.json["revision"]

    await asyncio.gather(*(edit_and_read(n % 10) for n in range(20)))


async def test_a_reader_who_is_called_away_leaves_nobody_waiting(
    served: Served, admin: Client
) -> None:
    jobs = [(await admin("POST", "/v1/jobs", JOB)).json["id"] for _ in range(3)]
    keys = [JobId(from_text("job", one)) for one in jobs]
    tenant = (await served.service.credentials.caller(admin.key or "", "")).tenant
    gate, entered = asyncio.Event(), asyncio.Event()

    async def slow(connection: object, wanted: object) -> object:
        entered.set()
        await gate.wait()
        return await read_jobs(connection, wanted)  # type: ignore[arg-type]

    reads = SharedReads(desk=served.desk, read=slow)  # type: ignore[arg-type,var-annotated]
    async with asyncio.TaskGroup() as group:
        busy = [group.create_task(reads.get(tenant, keys[0])) for _ in range(SLOTS)]
        await entered.wait()
        leader = group.create_task(reads.get(tenant, keys[1]))
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        follower = group.create_task(reads.get(tenant, keys[2]))
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        leader.cancel()
        gate.set()
    found = [one.result() for one in (follower, *busy)]
    assert [one and one.id for one in found] == [keys[2], *[keys[0]] * SLOTS]
    assert leader.cancelled()


async def test_a_database_that_is_away_is_told_to_all_of_them(served: Served) -> None:
    async def gone(_connection: object, _wanted: object) -> object:
        raise Unavailable("away")

    reads = SharedReads(desk=served.desk, read=gone)  # type: ignore[arg-type,var-annotated]
    key = JobId(from_text("job", "job_" + "0" * 26))
    tenant = await served.tenant("t")
    found = await asyncio.gather(
        *(reads.get(tenant, key) for _ in range(5)), return_exceptions=True
    )
    assert {type(one) for one in found} == {Unavailable}
    with pytest.raises(Unavailable):
        await reads.get(tenant, key)
