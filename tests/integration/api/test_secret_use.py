"""Secrets: who may have one sent, and where to. To say where a secret goes is to read it."""

from typing import Any

import pytest

from api_kit import Client, Served
from betimes.domain.scopes import OF_ROLE

BOUND = "https://api.example.com"
EVIL = "https://evil.example.com"
NAMED: list[dict[str, Any]] = [
    {"headers": {"x-key": "Token {{secret:s}}"}},
    {"auth": {"type": "bearer", "secret": "s"}},
    {"auth": {"type": "basic", "username": "me", "secret": "s"}},
    {"auth": {"type": "header", "header": "x-key", "secret": "s"}},
    {"secret_ref": "s"},
    {"client_certificate": "s"},
    {"ca_certificates": "{{secret:s}}"},
    {
        "auth": {
            "type": "oauth2",
            "token_url": f"{BOUND}/token",
            "client_id": "me",
            "secret": "s",
        }
    },
]


def http(url: str = f"{BOUND}/hook", **more: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, **more}


def ways(target: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Every operation that keeps a target, as somebody would ask for it."""
    job = {"schedule": "every 1h", "target": target}
    return [
        ("POST", "/v1/runs", {"target": target}),
        ("POST", "/v1/runs/batch", {"items": [{"target": target}]}),
        ("POST", "/v1/jobs", job),
        ("PUT", "/v1/jobs/fresh?force=true", job),
        ("POST", "/v1/jobs/batch", {"items": [job]}),
        (
            "POST",
            "/v1/jobs/apply",
            {"selector": {"tags": {"a": "b"}}, "jobs": [{**job, "name": "x", "tags": {"a": "b"}}]},
        ),
        ("PUT", "/v1/workflows/flow", {"nodes": {"a": {"target": target}}}),
    ]


async def a_secret(admin: Client, *origins: str, name: str = "s") -> None:
    body = {"value": "hush-hush-hush", "origins": list(origins or (BOUND,))}
    assert (await admin("PUT", f"/v1/secrets/{name}", body)).status == 201


async def without_use(served: Served) -> Client:
    scopes = sorted(OF_ROLE["editor"] - {"secrets:use"})
    return served.client(await served.key(kind="sk", scopes=scopes))


@pytest.mark.parametrize("named", NAMED, ids=str)
async def test_to_name_a_secret_asks_for_a_scope_of_its_own(
    served: Served, admin: Client, named: dict[str, Any]
) -> None:
    await a_secret(admin)
    narrow = await without_use(served)
    for method, path, body in ways(http(**named)):
        refused = await narrow(method, path, body)
        assert (refused.status, refused.code) == (403, "scope_missing"), (path, refused.body)
        assert "secrets:use" in refused.json["detail"]
        done = await admin(method, path, body)
        assert done.status in (200, 201, 202), (path, done.body)
    plain = [await narrow(*way) for way in ways(http())]
    assert all(one.status in (200, 201, 202) for one in plain), "what names none goes on"


async def test_a_secret_goes_to_its_origins_only(admin: Client) -> None:
    await a_secret(admin)
    for named in NAMED:
        for method, path, body in ways(http(f"{EVIL}/hook", **named)):
            refused = await admin(method, path, body)
            assert (refused.status, refused.code) == (422, "url_not_allowed"), (path, refused.body)
            assert BOUND in refused.json["detail"]
            assert EVIL in refused.json["detail"]
            assert refused.json["errors"][0]["pointer"].endswith("/target/url")


async def test_a_client_secret_is_bound_to_its_token_endpoint_too(admin: Client) -> None:
    await a_secret(admin)
    auth = {"type": "oauth2", "token_url": f"{EVIL}/token", "client_id": "me", "secret": "s"}
    refused = await admin("POST", "/v1/runs", {"target": http(auth=auth)})
    assert refused.code == "url_not_allowed"


async def test_a_batch_refuses_one_and_takes_the_other(admin: Client) -> None:
    await a_secret(admin)
    named: dict[str, Any] = {"auth": {"type": "bearer", "secret": "s"}}
    items = [{"target": http(f"{EVIL}/", **named)}, {"target": http(**named)}]
    done = await admin("POST", "/v1/runs/batch", {"items": items, "mode": "independent"})
    assert [one["status"] for one in done.json["items"]] == [422, 202]


@pytest.mark.parametrize(
    "patch",
    [
        {"url": f"{BOUND}/other"},
        {"url": f"{EVIL}/"},
        {"headers": {"x-more": "{{secret:s}}"}},
        {"method": "GET"},
        {"follow_redirects": 3},
    ],
    ids=str,
)
async def test_a_patch_is_judged_by_what_comes_of_it(
    served: Served, admin: Client, patch: dict[str, Any]
) -> None:
    """A body that names no secret may still move one."""
    await a_secret(admin)
    target = http(auth={"type": "bearer", "secret": "s"})
    made = await admin("POST", "/v1/jobs", {"name": "j", "schedule": "every 1h", "target": target})
    assert made.status == 201, made.body
    narrow = await without_use(served)
    refused = await narrow("PATCH", "/v1/jobs/j", {"target": patch})
    assert (refused.status, refused.code) == (403, "scope_missing"), refused.body
    done = await admin("PATCH", "/v1/jobs/j", {"target": patch})
    assert done.status == (422 if EVIL in str(patch) else 200), done.body


async def test_what_leaves_the_target_alone_asks_for_nothing(served: Served, admin: Client) -> None:
    """Neither an edit elsewhere, nor to start what others have written."""
    await a_secret(admin)
    target = http(auth={"type": "bearer", "secret": "s"})
    job = {"name": "j", "schedule": "every 1h", "target": target}
    await admin("POST", "/v1/jobs", job)
    await admin("PUT", "/v1/workflows/flow", {"nodes": {"a": {"target": target}}})
    await admin("PATCH", "/v1/secrets/s", {"origins": ["https://elsewhere.example"]})
    narrow = await without_use(served)
    assert (await narrow("PATCH", "/v1/jobs/j", {"schedule": "every 2h"})).status == 200
    assert (await narrow("PUT", "/v1/jobs/j?force=true", {**job, "priority": 7})).status == 200
    more = {"nodes": {"a": {"target": target}, "b": {"handler": "h", "needs": ["a"]}}}
    kept = await narrow("PUT", "/v1/workflows/flow", more)
    assert kept.status in (200, 201), kept.body
    operator = served.client(await served.key(kind="sk", scopes=sorted(OF_ROLE["operator"])))
    assert (await operator("POST", "/v1/jobs/j/run", {})).status in (200, 201, 202)


async def test_an_old_revision_is_judged_like_a_new_one(served: Served, admin: Client) -> None:
    """To bring back where a secret went is to say where it goes."""
    await a_secret(admin)
    target = http(auth={"type": "bearer", "secret": "s"})
    await admin("POST", "/v1/jobs", {"name": "j", "schedule": "every 1h", "target": target})
    plain = {"target": {"url": f"{EVIL}/", "auth": None}}
    assert (await admin("PATCH", "/v1/jobs/j", plain)).status == 200
    narrow = await without_use(served)
    back = {"revision": 1}
    assert (await narrow("POST", "/v1/jobs/j/rollback", back)).code == "scope_missing"
    await admin("PATCH", "/v1/secrets/s", {"origins": [EVIL]})
    assert (await admin("POST", "/v1/jobs/j/rollback", back)).code == "url_not_allowed"
    await admin("PATCH", "/v1/secrets/s", {"origins": [BOUND]})
    assert (await admin("POST", "/v1/jobs/j/rollback", back)).status == 200


async def test_a_new_secret_says_where_it_may_go(admin: Client) -> None:
    """There is no default: nowhere would surprise those who use it, anywhere those who wrote it."""
    refused = await admin("PUT", "/v1/secrets/s", {"value": "hush"})
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/origins")
    assert "https://api.example.com" in refused.json["detail"]
    wrong = await admin("PUT", "/v1/secrets/s", {"value": "hush", "origins": ["example.com"]})
    assert (wrong.status, wrong.json["errors"][0]["pointer"]) == (400, "/origins/0")
    made = await admin("PUT", "/v1/secrets/s", {"value": "hush", "origins": [f"{BOUND}:443/"]})
    assert (made.status, made.json["origins"]) == (201, [BOUND])
    again = await admin("PUT", "/v1/secrets/s", {"value": "other"})
    assert (again.status, again.json["origins"]) == (200, [BOUND]), "it stays bound"
    wider = await admin("PATCH", "/v1/secrets/s", {"origins": ["https://*.example.com", "*"]})
    assert wider.json["origins"] == ["https://*.example.com", "*"]
    for shown in (
        (await admin("GET", "/v1/secrets/s")).json,
        (await admin("GET", "/v1/secrets")).json["items"][0],
    ):
        assert shown["origins"] == wider.json["origins"]
    same = await admin("PUT", "/v1/secrets/s", {"value": "other", "origins": []})
    assert (same.json["origins"], same.json["version"]) == ([], 2)
    assert (await admin("PATCH", "/v1/secrets/none", {"origins": []})).status == 404
    audit = (await admin("GET", "/v1/audit")).json["items"]
    assert any(one["action"] == "secrets.bind" for one in audit)


async def test_who_may_use_secrets_does_not_say_where_they_go(
    served: Served, admin: Client
) -> None:
    await a_secret(admin)
    editor = served.client(await served.key(kind="sk", scopes=sorted(OF_ROLE["editor"])))
    assert (await editor("PATCH", "/v1/secrets/s", {"origins": ["*"]})).code == "scope_missing"
    assert {role for role, scopes in OF_ROLE.items() if "secrets:use" in scopes} == {
        "editor",
        "admin",
    }
    assert {role for role, scopes in OF_ROLE.items() if "secrets:write" in scopes} == {"admin"}
