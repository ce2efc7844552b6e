"""Secrets over the API: written, named, deleted, never read back."""

from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.ops.secrets import open_secrets

CANARY = "canary-5b8e2f91"


async def test_a_secret_is_written_and_never_shown(served: Served, admin: Client) -> None:
    """Not by any answer, not by the audit."""
    made = await admin("PUT", "/v1/secrets/api", {"value": CANARY, "origins": ["*"]})
    assert made.status == 201, made.body
    assert made.headers["location"] == "/v1/secrets/api"
    again = await admin("PUT", "/v1/secrets/api", {"value": CANARY, "origins": ["*"]})
    assert (again.status, again.json["version"]) == (200, 1)
    changed = await admin("PUT", "/v1/secrets/api", {"value": f"{CANARY}-2"})
    assert (changed.status, changed.json["version"], changed.json["versions"]) == (200, 2, 2)
    shown = await admin("GET", "/v1/secrets/api")
    assert [one["version"] for one in shown.json["history"]] == [2, 1]
    listed = await admin("GET", "/v1/secrets")
    assert [one["name"] for one in listed.json["items"]] == ["api"]
    audit = await admin("GET", "/v1/audit")
    assert sum("secrets.put" in str(one) for one in audit.json["items"]) == 2
    for answer in (made, again, changed, shown, listed, audit):
        assert CANARY.encode() not in answer.body
    opened = await open_secrets(served.desk, DEFAULT, ["api"])
    assert list(opened["api"].values) == [f"{CANARY}-2".encode(), CANARY.encode()]


async def test_names_come_page_by_page(admin: Client) -> None:
    """In their order."""
    for name in ("b", "a", "c"):
        await admin("PUT", f"/v1/secrets/{name}", {"value": "value", "origins": ["*"]})
    first = (await admin("GET", "/v1/secrets?limit=2")).json
    second = (await admin("GET", f"/v1/secrets?limit=2&cursor={first['next_cursor']}")).json
    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next_cursor"] is None


async def test_a_secret_is_deleted_whole_or_by_version(admin: Client) -> None:
    """And then it is not there."""
    for value in ("one", "two"):
        await admin("PUT", "/v1/secrets/api", {"value": value, "origins": ["*"]})
    assert (await admin("DELETE", "/v1/secrets/api/versions/1")).status == 204
    assert (await admin("GET", "/v1/secrets/api")).json["versions"] == 1
    for version in ("1", "x", "99999999999"):
        gone = await admin("DELETE", f"/v1/secrets/api/versions/{version}")
        assert gone.status == 404, gone.body
    assert (await admin("DELETE", "/v1/secrets/api")).status == 204
    assert (await admin("DELETE", "/v1/secrets/api")).status == 404
    assert (await admin("GET", "/v1/secrets/api")).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"value": ""},
        {"value": CANARY, "value_base64": "eA=="},
        {"value_base64": f"{CANARY}!"},
        {"value": CANARY * 10_000},
        {"value": CANARY, "keep": 0},
        {"value": [CANARY]},
        {"worth": CANARY},
    ],
)
async def test_what_is_refused_is_not_repeated(admin: Client, body: dict[str, Any]) -> None:
    """A sentence about a secret does not hold it."""
    answer = await admin("PUT", "/v1/secrets/api", body)
    assert 400 <= answer.status < 500, answer.body
    assert CANARY.encode() not in answer.body


async def test_a_name_must_be_one(admin: Client) -> None:
    """It has to stand in a reference."""
    for name in ("a%20b", "%7B%7B", "-a"):
        assert (
            await admin("PUT", f"/v1/secrets/{name}", {"value": "v", "origins": ["*"]})
        ).status == 400


async def test_who_may_write_jobs_may_not_write_secrets(served: Served) -> None:
    """Editors see names; workers and readers see nothing."""
    editor = served.client(
        await served.key(kind="sk", scopes=["jobs:write", "jobs:read", "secrets:read"])
    )
    assert (await editor("GET", "/v1/secrets")).status == 200
    assert (await editor("PUT", "/v1/secrets/a", {"value": "v"})).code == "scope_missing"
    for kind in ("wk", "rk"):
        nobody = served.client(await served.key(kind=kind))
        assert (await nobody("GET", "/v1/secrets")).code == "scope_missing"


async def test_a_trial_keeps_nothing(admin: Client) -> None:
    """Neither the secret nor a key for it."""
    tried = await admin(
        "PUT", "/v1/secrets/api?validate_only=true", {"value": CANARY, "origins": ["*"]}
    )
    assert tried.json["validated"] is True
    assert (await admin("GET", "/v1/secrets/api")).status == 404


async def test_a_target_names_secrets_it_does_not_hold(admin: Client) -> None:
    """They are shown by name, checked when they are written, and kept through a patch."""
    target = {
        "type": "http",
        "url": "https://example.com/hook",
        "headers": {"x-key": "Token {{secret:api}}"},
        "auth": {"type": "bearer", "secret": "token"},
        "secret_ref": "signing",
        "client_certificate": "cert",
        "ca_certificates": "{{secret:authorities}}",
        "redact": {"headers": ["x-session"], "paths": ["/card/number"]},
    }
    job = {"schedule": "every 1h", "name": "hook", "target": target}
    made = await admin("POST", "/v1/jobs", job)
    assert made.status == 201, made.body
    shown = (await admin("GET", "/v1/jobs/hook?view=full")).json["target"]
    assert {name: shown[name] for name in target} == target
    await admin("PATCH", "/v1/jobs/hook", {"priority": 3})
    assert (await admin("GET", "/v1/jobs/hook?view=full")).json["target"] == shown


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"auth": {"type": "header", "header": "Host", "secret": "a"}}, "/target/auth/header"),
        ({"auth": {"type": "basic", "username": "a:b", "secret": "a"}}, "/target/auth/username"),
        (
            {
                "auth": {
                    "type": "oauth2",
                    "token_url": "http://169.254.169.254/token",
                    "client_id": "c",
                    "secret": "a",
                }
            },
            "/target/auth/token_url",
        ),
        (
            {
                "auth": {"type": "bearer", "secret": "a"},
                "headers": {"Authorization": "Bearer {{secret:b}}"},
            },
            "/target/auth",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused_at_once(
    admin: Client, target: dict[str, Any], pointer: str
) -> None:
    """With a pointer to it; where tokens come from is guarded like any target."""
    whole = {"type": "http", "url": "https://example.com/hook", **target}
    answer = await admin("POST", "/v1/runs", {"target": whole})
    assert answer.status in (400, 422), answer.body
    assert [one["pointer"] for one in answer.json["errors"]] == [pointer]
