"""Workers with different handlers in one queue: nobody is handed what only others can do."""

from typing import Any

from api_kit import Client, Served


async def a_worker(served: Served, *handlers: str) -> tuple[Client, str]:
    client = served.client(await served.key(kind="wk"))
    made = await client("POST", "/v1/workers", {"name": "w", "handlers": list(handlers)})
    return client, made.json["worker_id"]


async def ask(worker: tuple[Client, str], wait: float = 0) -> list[dict[str, Any]]:
    client, name = worker
    got = await client("POST", f"/v1/workers/{name}/lease", {"max": 10, "wait": wait})
    found: list[dict[str, Any]] = got.json["runs"]
    return found


async def test_a_worker_is_not_even_asked_for_what_it_cannot_do(
    served: Served, admin: Client
) -> None:
    mine = await a_worker(served, "mine")
    theirs = await a_worker(served, "theirs")
    for handler in ("theirs", "mine", "theirs"):
        await admin("POST", "/v1/runs", {"handler": handler})
    assert [run["handler"] for run in await ask(mine)] == ["mine"]
    assert await ask(mine) == []
    found = await ask(theirs, wait=5)
    assert [(run["handler"], run["fence"]) for run in found] == [("theirs", 1)] * 2


async def test_whoever_names_no_handlers_is_given_all_but_requests(
    served: Served, admin: Client
) -> None:
    """Requests are ours to send: put back, they are not handed to such a worker again."""
    anything = await a_worker(served)
    target = {"type": "http", "url": "http://127.0.0.1:9/", "method": "POST"}
    await admin("POST", "/v1/runs", {"target": target})
    await admin("POST", "/v1/runs", {"handler": "any"})
    assert [run["handler"] for run in await ask(anything)] == ["any"]
    assert await ask(anything, wait=1) == []


async def test_a_handler_with_a_name_like_ours_is_refused(admin: Client) -> None:
    got = await admin("POST", "/v1/runs", {"handler": ":http"})
    assert (got.status, got.json["errors"][0]["pointer"]) == (400, "/handler")
