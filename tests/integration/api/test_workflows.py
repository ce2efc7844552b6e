"""Workflows over HTTP: versions, starting, looking, and what people do to nodes."""

from typing import Any

from api_kit import Client

NODES: dict[str, Any] = {
    "list": {"handler": "list_files"},
    "parse": {
        "handler": "parse",
        "payload": {"file": {"$item": "/name"}},
        "map": {"over": {"$output": "list"}, "max_parallel": 20},
    },
    "publish": {
        "target": {"type": "http", "url": "https://hooks.example/x", "headers": {"X-Key": "k"}},
        "payload": {"parts": {"$output": "parse"}},
        "gate": {"type": "approval", "timeout": "PT2H"},
        "retry": {"max_attempts": 2},
    },
    "clean": {"handler": "clean", "needs": ["publish"], "when": "all_done"},
}


async def put(admin: Client, name: str = "daily", **more: Any) -> Any:
    return await admin("PUT", f"/v1/workflows/{name}", {"nodes": NODES, **more})


async def test_what_differs_is_the_next_version(admin: Client) -> None:
    """The same again is no new one; every version can be read; a deleted name goes on counting."""
    first = await put(admin)
    assert (first.status, first.json["version"]) == (201, 1)
    assert first.headers["etag"] == '"1"'
    again = await put(admin)
    assert (again.status, again.json["version"]) == (200, 1)
    second = await put(admin, timeout="1h")
    assert (second.status, second.json["version"]) == (201, 2)
    assert second.json["timeout"] == "PT1H"

    listed = await admin("GET", "/v1/workflows/daily/versions")
    assert [one["version"] for one in listed.json["items"]] == [2, 1]
    old = await admin("GET", "/v1/workflows/daily/versions/1")
    assert old.json["timeout"] is None
    assert (await admin("GET", "/v1/workflows/daily/versions/3")).status == 404
    assert (await admin("GET", "/v1/workflows/daily/versions/x")).status == 404

    assert (await admin("DELETE", "/v1/workflows/daily")).status == 204
    assert (await admin("GET", "/v1/workflows/daily")).status == 404
    assert (await put(admin)).json["version"] == 3


async def test_payloads_are_shown_to_who_may_read_them(admin: Client) -> None:
    """In the full view; the basic one has neither payloads nor headers."""
    await put(admin)
    basic = (await admin("GET", "/v1/workflows/daily")).json["nodes"]
    assert "payload" not in basic["parse"]
    assert basic["parse"]["map"] == {"max_parallel": 20}
    assert basic["publish"]["target"] == {"type": "http"}
    full = (await admin("GET", "/v1/workflows/daily?view=full")).json["nodes"]
    assert full["parse"]["payload"] == {"file": {"$item": "/name"}}
    assert full["publish"]["target"]["headers"] == {"X-Key": "k"}


async def test_preconditions_are_honoured(admin: Client) -> None:
    """For those who say what they have seen."""
    await put(admin)
    none = {"If-None-Match": "*"}
    body = {"nodes": {"a": {"handler": "h"}}}
    assert (await admin("PUT", "/v1/workflows/daily", body, headers=none)).status == 412
    stale = await admin("PUT", "/v1/workflows/daily", body, headers={"If-Match": '"7"'})
    assert (stale.status, stale.headers["etag"]) == (412, '"1"')
    fits = await admin("PUT", "/v1/workflows/daily", body, headers={"If-Match": '"1"'})
    assert fits.status == 201
    tried = await admin("PUT", "/v1/workflows/other?validate_only=true", body)
    assert tried.json["validated"] is True
    assert (await admin("GET", "/v1/workflows/other")).status == 404


async def test_a_cycle_is_returned(admin: Client) -> None:
    """With the nodes that wait for each other; other mistakes with a pointer to them."""
    nodes = {
        "a": {"handler": "h", "needs": ["b"]},
        "b": {"handler": "h", "payload": {"$output": "a"}},
    }
    told = await admin("PUT", "/v1/workflows/w", {"nodes": nodes})
    assert (told.status, told.json["code"]) == (422, "workflow_cycle")
    assert sorted(set(told.json["cycle"])) == ["a", "b"]
    nodes["b"] = {"handler": "h", "needs": ["nobody"]}
    told = await admin("PUT", "/v1/workflows/w", {"nodes": nodes})
    assert (told.status, told.json["code"]) == (422, "workflow_unknown_node")
    assert told.json["errors"][0]["pointer"] == "/nodes/b/needs"
    bad = {"target": {"type": "http", "url": "https://127.0.0.1/"}}
    told = await admin("PUT", "/v1/workflows/w", {"nodes": {"a": bad}})
    assert (told.status, told.json["code"]) == (422, "url_not_allowed")
    told = await admin("PUT", "/v1/workflows/w", {"nodes": {"a": {"handler": "h", "timeout": "x"}}})
    assert told.status == 400
    assert told.json["errors"][0]["pointer"].startswith("/nodes/a")


async def test_a_run_with_its_graph(admin: Client) -> None:
    """Started once per key; the graph tells states, what is left to wait for, and times."""
    await put(admin)
    body = {"input": {"a": 1}, "tags": {"env": "test"}}
    first = await admin("POST", "/v1/workflows/daily/runs", body, idem="once")
    again = await admin("POST", "/v1/workflows/daily/runs", body, idem="once")
    assert (first.status, again.status) == (202, 202)
    assert first.json["id"] == again.json["id"]
    assert first.json["tags"] == {"env": "test"}
    run = first.json["id"]

    told = (await admin("GET", f"/v1/workflow-runs/{run}?include=graph&view=full")).json
    assert told["input"] == {"a": 1}
    nodes = {one["node"]: one for one in told["graph"]["nodes"]}
    assert nodes["list"]["state"] == "running"
    assert nodes["list"]["run_id"].startswith("run_")
    assert (nodes["parse"]["state"], nodes["parse"]["needs_left"]) == ("waiting", 1)
    assert nodes["publish"]["gate"] == {"type": "approval", "is_open": False, "until": None}
    assert told["graph"]["critical_path"] == ["list"]
    one = (await admin("GET", f"/v1/runs/{nodes['list']['run_id']}")).json
    assert (one["workflow_run_id"], one["node"], one["trigger"]) == (run, "list", "workflow")
    runs = (await admin("GET", f"/v1/runs?workflow_run={run}")).json["items"]
    assert [each["node"] for each in runs] == ["list"]
    plain = (await admin("GET", f"/v1/workflow-runs/{run}")).json
    assert "graph" not in plain
    assert "input" not in plain

    listed = await admin("GET", "/v1/workflow-runs?workflow=daily&state=running")
    assert [one["id"] for one in listed.json["items"]] == [run]
    assert (await admin("GET", "/v1/workflow-runs?state=failed")).json["items"] == []
    page = await admin("GET", "/v1/workflow-runs?limit=1")
    assert page.json["next_cursor"]
    rest = await admin("GET", f"/v1/workflow-runs?limit=1&cursor={page.json['next_cursor']}")
    assert rest.json["items"] == []


async def test_people_and_nodes(admin: Client) -> None:
    """Skipping, approving, cancelling, retrying; what is not possible is told as such."""
    nodes = {
        "first": {"handler": "h", "gate": {"type": "approval"}},
        "then": {"handler": "h", "needs": ["first"], "gate": {"type": "signal"}},
    }
    await admin("PUT", "/v1/workflows/w", {"nodes": nodes})
    run = (await admin("POST", "/v1/workflows/w/runs", {})).json["id"]
    base = f"/v1/workflow-runs/{run}"
    assert (await admin("POST", f"{base}/nodes/nobody/skip", {})).status == 404
    told = await admin("POST", f"{base}/nodes/then/signal", {"data": 1})
    assert (told.status, told.json["code"]) == (409, "invalid_state")
    told = await admin("POST", f"{base}/nodes/first/approve", {"reason": "looks fine"})
    states = {one["node"]: one["state"] for one in told.json["graph"]["nodes"]}
    assert states == {"first": "running", "then": "waiting"}
    told = await admin("POST", f"{base}/cancel", {"reason": "enough"})
    assert told.status == 202
    assert (told.json["state"], told.json["stopping"]) == ("cancelled", "cancel")
    told = await admin("POST", f"{base}/retry", {"from": "node"})
    assert (told.status, told.json["code"]) == (400, "invalid_parameter")
    told = await admin("POST", f"{base}/retry", {"from": "node", "node": "nobody"})
    assert told.status == 404
    told = await admin("POST", f"{base}/retry", {"from": "start"})
    assert (told.status, told.json["state"], told.json["retries"]) == (202, "running", 1)
    acts = (await admin("GET", "/v1/audit?action=workflow_runs.approve")).json["items"]
    assert acts[0]["after"]["reason"] == "looks fine"


async def test_a_workflow_that_a_job_starts_stays(admin: Client) -> None:
    """Until no job does."""
    await admin("PUT", "/v1/workflows/w", {"nodes": {"a": {"handler": "h"}}})
    target = {"type": "workflow", "workflow": "w", "version": 1}
    job = {"schedule": "every 1h", "target": target, "name": "starts-it"}
    made = await admin("POST", "/v1/jobs", job)
    assert made.json["target"] == target
    told = await admin("DELETE", "/v1/workflows/w")
    assert (told.status, told.json["code"]) == (409, "dependency_in_use")
    await admin("DELETE", "/v1/jobs/starts-it")
    assert (await admin("DELETE", "/v1/workflows/w")).status == 204
