"""Nobody makes, changes or takes away a key that reaches further than their own."""

from api_kit import Client, Served, served
from betimes.ops.credentials import _within

CODES = {"name": "k", "role": "editor", "email": "ada@example.org"}


async def test_a_tenants_key_makes_no_administrator(served: Served, admin: Client) -> None:
    other = await served.tenant("other")
    theirs = served.client(await served.key(other, kind="sk"))
    await theirs("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h", "name": "theirs"})
    service = served.client(await served.key(kind="sk"))
    asked = {"name": "mine", "kind": "ak", "scopes": ["jobs:read", "payloads:read"]}
    refused = await service("POST", "/v1/api-keys", asked)
    assert (refused.status, refused.code) == (403, "scope_missing")
    made = await admin("POST", "/v1/api-keys", asked)
    assert made.status == 201, "an administrator makes another one"
    there = {"Betimes-Tenant": "other"}
    found = await served.client(made.json["secret"])("GET", "/v1/jobs/theirs", headers=there)
    assert found.status == 200, "which is why nobody else does"


async def test_a_tenants_key_leaves_administrators_alone(served: Served, admin: Client) -> None:
    service = served.client(await served.key(kind="sk"))
    made = await admin("POST", "/v1/api-keys", {"name": "a", "kind": "ak", "scopes": ["jobs:read"]})
    place = f"/v1/api-keys/{made.json['id']}"
    tries = [
        await service("PATCH", place, {"expires_at": "2026-01-01T00:00:00Z"}),
        await service("POST", f"{place}/rotate", {"overlap": "PT0S"}),
        await service("DELETE", place),
    ]
    assert [one.status for one in tries] == [403, 403, 403]
    assert (await served.client(made.json["secret"])("GET", "/v1/whoami")).status == 200
    assert (await admin("PATCH", place, {"name": "b"})).status == 200
    assert (await admin("DELETE", place)).status == 204


async def test_networks_hold_for_what_a_key_makes(served: Served, admin: Client) -> None:
    bound = await admin("POST", "/v1/api-keys", {"name": "here", "ip_allow": ["127.0.0.0/8"]})
    here = served.client(bound.json["secret"])
    place = f"/v1/api-keys/{bound.json['id']}"
    wider = [
        await here("POST", "/v1/api-keys", {"name": "anywhere"}),
        await here("POST", "/v1/api-keys", {"name": "wide", "ip_allow": ["0.0.0.0/0"]}),
        await here("POST", "/v1/api-keys", {"name": "other", "ip_allow": ["::/0"]}),
        await here("PATCH", place, {"ip_allow": ["127.0.0.0/8", "10.0.0.0/8"]}),
        await here("POST", "/v1/members", {**CODES, "name": "Ada"}),
        await here("POST", "/v1/auth/device/answer", {"user_code": "BCDF-GHJK"}),
    ]
    assert [one.status for one in wider] == [403] * len(wider)
    inside = await here("POST", "/v1/api-keys", {"name": "in", "ip_allow": ["127.0.0.1/32"]})
    assert inside.status == 201
    free = await admin("POST", "/v1/api-keys", {"name": "free"})
    taken = await here("PATCH", f"/v1/api-keys/{free.json['id']}", {"ip_allow": ["127.0.0.1/32"]})
    assert taken.status == 403, "what reaches further is not to be locked in"
    assert (await here("DELETE", place)).status == 204, "its own"


async def test_queues_bind_only_keys_that_serve_them(served: Served, admin: Client) -> None:
    asked = {"name": "k", "kind": "sk", "queues": ["mail"]}
    refused = await admin("POST", "/v1/api-keys", asked)
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/queues")
    assert "audit:read" in refused.json["detail"]
    serving = await admin("POST", "/v1/api-keys", {**asked, "scopes": ["workers:lease"]})
    assert serving.status == 201, serving.body
    free = await admin("POST", "/v1/api-keys", {"name": "free"})
    later = await admin("PATCH", f"/v1/api-keys/{free.json['id']}", {"queues": ["mail"]})
    assert (later.status, later.json["errors"][0]["pointer"]) == (400, "/queues")


async def test_a_device_is_not_let_in_by_somebody_with_nothing_to_give(served: Served) -> None:
    begun = (await served.client(None)("POST", "/v1/auth/device")).json
    narrow = served.client(await served.key(kind="ak", scopes=["cluster:read"]))
    answer = {"user_code": begun["user_code"]}
    refused = await narrow("POST", "/v1/auth/device/answer", answer)
    assert (refused.status, refused.code) == (403, "scope_missing")
    no = await narrow("POST", "/v1/auth/device/answer", {**answer, "approve": False})
    assert no.status == 200, "saying no gives nothing"


async def test_an_account_is_the_same_however_it_is_written(dsn: str) -> None:
    async with served(dsn, failures_per_minute=1_000) as api:
        anybody = Client(api.port)
        wrong = {"tenant": "default", "password": "not the right one"}
        forms = ["ada@example.org", "Ada@example.org", "ADA@example.org", "ada@EXAMPLE.org"]
        told = [
            (await anybody("POST", "/v1/sessions", {**wrong, "email": form})).code
            for form in [*forms, "adA@example.org", "aDa@example.org"]
        ]
        assert told == ["invalid_credentials"] * 5 + ["rate_limited"]


async def test_who_has_guessed_too_often_costs_no_more_digests(dsn: str) -> None:
    async with served(dsn, failures_per_minute=2) as api:
        anybody = Client(api.port)
        codes = [
            (await anybody("POST", "/v1/sessions", _guess(number))).code for number in range(4)
        ]
        assert codes == ["invalid_credentials"] * 2 + ["rate_limited"] * 2
        known = await api.key()
        opened = await anybody("POST", "/v1/sessions", {"key": known})
        assert opened.status == 201, "a whole key is cheap to look at"
        tries = api.service.sessions._tries
        assert sorted(tries) == ["default:0@example.org", "default:1@example.org"]


def _guess(number: int) -> dict[str, str]:
    return {"tenant": "default", "email": f"{number}@example.org", "password": "guess it now"}


def test_an_address_of_both_families_is_in_its_network() -> None:
    assert _within("::ffff:10.1.2.3", ("10.0.0.0/8",))
    assert not _within("::ffff:11.1.2.3", ("10.0.0.0/8",))
    assert _within("fd00::1", ("fd00::/8",))
