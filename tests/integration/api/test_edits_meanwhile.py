"""Whoever does not say which revision it has seen is never refused for another one's edit."""

import asyncio
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.domain.ids import JobId, from_text
from betimes.ops.update import change_job
from ops_kit import every

EDITS = 12
JOB = {"name": "j", "schedule": "every 1h", "handler": "h"}
HOOK = {"type": "webhook", "url": "https://example.com/hook", "event_types": ["run.*"]}


async def test_edits_of_one_job_at_once_are_all_made(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    answers = await asyncio.gather(
        *(admin("PATCH", "/v1/jobs/j", {"tags": {f"t{n}": "x"}}) for n in range(EDITS))
    )
    assert {answer.status for answer in answers} == {200}
    job = (await admin("GET", "/v1/jobs/j")).json
    assert job["tags"] == {f"t{n}": "x" for n in range(EDITS)}, "each was merged into the others"
    assert job["revision"] == EDITS + 1


async def test_any_revision_is_as_good_as_none(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    answers = await asyncio.gather(
        *(
            admin("PATCH", "/v1/jobs/j", {"tags": {f"t{n}": "x"}}, headers={"If-Match": "*"})
            for n in range(EDITS)
        )
    )
    assert {answer.status for answer in answers} == {200}


async def test_of_those_who_name_a_revision_one_wins(admin: Client) -> None:
    await admin("POST", "/v1/jobs", JOB)
    answers = await asyncio.gather(
        *(
            admin("PATCH", "/v1/jobs/j", {"tags": {f"t{n}": "x"}}, headers={"If-Match": '"1"'})
            for n in range(EDITS)
        )
    )
    assert sorted(answer.status for answer in answers) == [200] + [412] * (EDITS - 1)


@pytest.mark.parametrize(
    ("method", "path", "bodies"),
    [
        ("PUT", "/v1/jobs/j?force=true", [{**JOB, "priority": n % 10} for n in range(EDITS)]),
        (
            "PUT",
            "/v1/calendars/c?force=true",
            [{"dates": [f"2030-01-{n + 1:02}"]} for n in range(EDITS)],
        ),
        (
            "PUT",
            "/v1/workflows/w",
            [{"nodes": {f"n{n}": {"handler": "h"}}} for n in range(EDITS)],
        ),
        ("PATCH", "/v1/endpoints/{endpoint}", [{"name": f"n{n}"} for n in range(EDITS)]),
        ("POST", "/v1/jobs/j/rollback", [{"revision": 1 + n % 2} for n in range(EDITS)]),
    ],
    ids=["jobs", "calendars", "workflows", "endpoints", "rollback"],
)
async def test_writes_of_everything_with_a_revision_at_once_are_all_made(
    admin: Client, method: str, path: str, bodies: list[Any]
) -> None:
    await admin("POST", "/v1/jobs", JOB)
    await admin("PATCH", "/v1/jobs/j", {"priority": 7})
    await admin("PATCH", "/v1/jobs/j", {"priority": 8})
    made = await admin("POST", "/v1/endpoints", HOOK)
    path = path.format(endpoint=made.json["id"])
    answers = await asyncio.gather(*(admin(method, path, body) for body in bodies))
    assert {answer.status for answer in answers} <= {200, 201}, [a.json for a in answers]


async def test_an_edit_within_a_long_operation_is_made_over_what_is_there(
    served: Served, admin: Client
) -> None:
    """Somebody edits the job between the look of the operation and its lock."""
    made = await admin("POST", "/v1/jobs", JOB)
    job = JobId(from_text("job", made.json["id"]))
    seen = list[int]()

    async def change(found: Any) -> Any:
        seen.append(found.revision)
        if len(seen) == 1:
            edited = await admin("PATCH", "/v1/jobs/j", {"priority": 3})
            assert edited.status == 200
        return every(60, priority=found.definition.priority)

    async def work(connection: Any) -> Any:
        inner = served.desk.inside(connection, served.desk.hints)
        return await change_job(inner, DEFAULT, job, change, actor=None)

    edited = await served.desk.transact(work, tenant=DEFAULT)
    assert seen == [1, 2]
    assert edited.definition.priority == 3
