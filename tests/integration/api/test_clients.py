"""Both clients against a served API."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api_kit import Served
from betimes.sdk import errors
from betimes.sdk.client import AsyncClient, Client


@pytest.fixture
async def client(served: Served) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(f"http://127.0.0.1:{served.port}", await served.key()) as one:
        yield one


@pytest.fixture
async def blocking(served: Served) -> AsyncIterator[Client]:
    with Client(f"http://127.0.0.1:{served.port}", await served.key()) as one:
        yield one


async def test_a_job_from_birth_to_end(client: AsyncClient) -> None:
    job = await client.jobs.create(name="n", schedule="every 1h", handler="h", tags={"a": "b"})
    assert (job.name, job.status.state, job.tags) == ("n", "active", {"a": "b"})
    paused = await client.jobs.pause(job.id, reason="release", if_match=job.etag)
    assert paused.status.state == "paused"
    updated = await client.jobs.update(job.id, changes={"priority": 9}, if_match=paused.etag)
    assert (updated.priority, updated.revision) == (9, job.revision + 1)
    with pytest.raises(errors.PreconditionFailed) as refused:
        await client.jobs.update(job.id, changes={"priority": 1}, if_match=job.etag)
    assert (refused.value.code, refused.value.status) == ("precondition_failed", 412)
    await client.jobs.delete(job.id)
    with pytest.raises(errors.NotFound):
        await client.jobs.get(job.id)


async def test_an_answer_can_be_had_as_it_came(client: AsyncClient, blocking: Client) -> None:
    job = await client.jobs.create(name="n", schedule="every 1h", handler="h")
    told = await client.with_raw_response.jobs.get("n")
    assert (told.status, told.headers["etag"]) == (200, job.etag)
    assert told.parse().id == job.id
    page = await client.with_raw_response.jobs.list(limit=1)
    assert [one.id for one in page.parse().items] == [job.id]
    raw = await asyncio.to_thread(blocking.with_raw_response.jobs.get, "n")
    assert raw.body == told.body
    listed = await asyncio.to_thread(blocking.with_raw_response.jobs.list)
    assert listed.headers["content-type"] == "application/json"
    with pytest.raises(errors.NotFound):
        await client.with_raw_response.jobs.get("nobody")


async def test_lists_page_by_themselves(client: AsyncClient) -> None:
    for _ in range(5):
        await client.runs.create(handler="h")
    assert len([run async for run in client.runs.list(limit=2)]) == 5
    first = await client.runs.list(limit=2).first_page()
    assert (len(first.items), first.next_cursor is None) == (2, False)
    assert [run.state async for run in client.runs.list(state=["dead"])] == []


async def test_the_blocking_twin(blocking: Client) -> None:
    def use() -> None:
        job = blocking.jobs.create(name="n", schedule="every 1h", handler="h")
        assert blocking.jobs.get(job.id).name == "n"
        runs = [blocking.runs.create(handler="h", payload={"n": n}).id for n in range(3)]
        listed = {run.id for run in blocking.runs.list(limit=1)}
        assert set(runs) <= listed
        assert blocking.whoami().tenant.slug == "default"
        assert blocking.request("GET", "/v1/jobs/none").status == 404
        with pytest.raises(errors.InvalidSchedule):
            blocking.jobs.create(schedule="every blue moon", handler="h")

    await asyncio.to_thread(use)


async def test_a_lost_server_is_told() -> None:
    client = AsyncClient("http://127.0.0.1:9", "k", retry_for=0)
    with pytest.raises(errors.Unreachable) as lost:
        await client.version()
    assert lost.value.sent is False


async def test_events_are_streamed(client: AsyncClient) -> None:
    seen: list[str] = []

    async def listen() -> None:
        async for event in client.stream_events():
            seen.append(event.type)
            if "job.created" in seen:
                return

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(listen())
        while not seen:
            await client.jobs.create(schedule="every 1h", handler="h")
            await client.time()
    assert "job.created" in seen
