"""A commit whose reply was lost: one effect, one audit row, one answer."""

import pytest

from api_kit import Client, Served
from betimes.domain.errors import UnknownOutcome
from betimes.store import database

JOB = {"schedule": "every 1h", "handler": "h", "name": "n"}


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The next commits happen, and nobody hears of it; as many as the list says."""
    left: list[int] = []
    commit = database._commit

    async def lose(connection: object) -> None:
        await commit(connection)  # type: ignore[arg-type]
        if left:
            left.pop()
            raise UnknownOutcome("the reply was lost")

    monkeypatch.setattr(database, "_commit", lose)
    return left


async def test_an_act_is_noted_once(served: Served, admin: Client, losing: list[int]) -> None:
    await admin("POST", "/v1/jobs", JOB)
    await admin("GET", "/v1/whoami")
    for path, body in (
        ("/v1/jobs/n/pause", {"reason": "x"}),
        ("/v1/jobs/n/resume", {}),
        ("/v1/jobs/n/run", {}),
        ("/v1/queues/mail/pause", {}),
    ):
        before = len((await admin("GET", "/v1/audit?limit=1000")).json["items"])
        losing += [1, 1]
        done = await admin("POST", path, body)
        losing.clear()
        assert done.status in (200, 202), done.body
        after = (await admin("GET", "/v1/audit?limit=1000")).json["items"]
        assert len(after) == before + 1, path
    assert (await admin("POST", "/v1/audit/verify")).json["intact"] is True
    assert served.service.jobs.commits >= 0


async def test_a_creation_happens_once(admin: Client, losing: list[int]) -> None:
    losing += [1, 1, 1]
    made = await admin("POST", "/v1/jobs", JOB, idem="k")
    losing.clear()
    assert made.status == 201, made.body
    again = await admin("POST", "/v1/jobs", JOB, idem="k")
    assert again.json["id"] == made.json["id"]
    assert len((await admin("GET", "/v1/jobs")).json["items"]) == 1
    assert len((await admin("GET", "/v1/audit?action=jobs.create")).json["items"]) == 1
