"""The clock of the database is set, by a minute back or an hour forward, while requests come in."""

import asyncio
from collections.abc import Iterator

import pytest

from api_kit import served as serving
from step_kit import SteppedKit, faketime, stepped_kit

JOB = {"schedule": "every 1h", "handler": "h"}


@pytest.fixture(scope="module")
def stepped() -> Iterator[SteppedKit]:
    library = faketime()
    if library is None:
        pytest.skip("libfaketime is not installed")
    with stepped_kit(library) as kit:
        yield kit


@pytest.mark.parametrize("seconds", [-66.0, 3600.0])
async def test_creations_do_not_wait_for_the_clock(stepped: SteppedKit, seconds: float) -> None:
    stepped.step(0.0)
    name = await stepped.server.create()
    async with serving(stepped.server.dsn(name)) as served:
        admin = await served.admin()
        assert (await admin("POST", "/v1/runs", {"handler": "h"})).status == 202
        assert (await admin("POST", "/v1/jobs", JOB)).status == 201
        stepped.step(seconds)
        for _ in range(4):
            async with asyncio.timeout(5):
                assert (await admin("POST", "/v1/runs", {"handler": "h"})).status == 202
                assert (await admin("POST", "/v1/jobs", JOB)).status == 201
                ready = await admin("GET", "/readyz")
            assert (ready.status, ready.json["status"]) == (200, "degraded")
    stepped.step(0.0)
    await stepped.server.drop(name)
