"""Members, sessions of browsers, and devices that have none, over HTTP."""

from typing import Any

from api_kit import Answer, Client, Served
from betimes.store.pool import Lane

ADA = {"email": "Ada@Example.org", "name": "Ada", "role": "editor"}
PASSWORD = "correct horse battery"  # noqa: S105 -- of a test


def pointers(answer: Answer) -> list[str]:
    return [error["pointer"] for error in answer.json["errors"]]


def browser(served: Served, answer: Answer) -> Client:
    """Somebody with the cookie of a session, on one of our own pages."""
    cookie = answer.headers["set-cookie"].partition(";")[0]
    headers = {"cookie": cookie, "betimes-csrf": answer.json["csrf_token"]}
    return Client(served.port, None, headers)


async def signed_in(served: Served, admin: Client, **more: Any) -> tuple[Client, str]:
    made = await admin("POST", "/v1/members", {**ADA, **more})
    assert made.status == 201, made.body
    body = {"code": made.json["code"], "password": PASSWORD}
    opened = await Client(served.port)("POST", "/v1/sessions", body)
    assert opened.status == 201, opened.body
    return browser(served, opened), made.json["id"]


async def test_a_member_is_invited_changed_and_removed(served: Served, admin: Client) -> None:
    made = await admin("POST", "/v1/members", ADA)
    assert (made.status, made.json["email"]) == (201, "ada@example.org")
    assert made.json["code"]
    place = made.headers["location"]
    twice = await admin("POST", "/v1/members", ADA)
    assert (twice.status, twice.code, pointers(twice)) == (409, "already_exists", ["/email"])
    bad = await admin("POST", "/v1/members", {**ADA, "email": "nobody"})
    assert (bad.status, pointers(bad)) == (400, ["/email"])
    role = await admin("POST", "/v1/members", {**ADA, "role": "emperor"})
    assert (role.status, pointers(role)) == (400, ["/role"])
    assert (await admin("GET", place)).json["code"] is None, "told once"
    changed = await admin(
        "PATCH", place, {"role": "viewer", "renew_code": True}, headers={"If-Match": '"1"'}
    )
    assert (changed.status, changed.json["role"], changed.json["revision"]) == (200, "viewer", 2)
    assert changed.json["code"] not in (None, made.json["code"])
    stale = await admin("PATCH", place, {"role": "admin"}, headers={"If-Match": '"1"'})
    assert stale.status == 412
    listed = (await admin("GET", "/v1/members")).json["items"]
    assert [(one["name"], one["role"]) for one in listed] == [("Ada", "viewer")]
    old = await Client(served.port)("POST", "/v1/sessions", {"code": made.json["code"]})
    assert (old.status, old.code) == (401, "invalid_credentials")
    assert (await admin("DELETE", place)).status == 204
    assert (await admin("GET", place)).status == 404
    acts = (await admin("GET", f"/v1/audit?resource={made.json['id']}")).json["items"]
    assert [act["action"] for act in reversed(acts)] == [
        "members.invite",
        "members.update",
        "members.remove",
    ]


async def test_nobody_gives_away_more_than_they_have(served: Served) -> None:
    some = ["members:read", "members:write", "jobs:read"]
    little = served.client(await served.key(kind="ak", scopes=some))
    refused = await little("POST", "/v1/members", {**ADA, "role": "admin"})
    assert (refused.status, refused.code) == (403, "scope_missing")


async def test_a_browser_signs_in_acts_and_signs_out(served: Served, admin: Client) -> None:
    visitor, member = await signed_in(served, admin)
    me = (await visitor("GET", "/v1/whoami")).json
    assert (me["key"]["id"], me["key"]["kind"]) == (member, "member")
    job = await visitor("POST", "/v1/jobs", {"schedule": "every 1h", "handler": "h"})
    assert job.status == 201, job.body
    (act,) = (await admin("GET", f"/v1/audit?resource={job.json['id']}")).json["items"]
    assert (act["actor"]["type"], act["actor"]["id"]) == ("member", member)
    assert (await visitor("GET", "/v1/audit")).code == "scope_missing", "an editor"
    out = await visitor("DELETE", "/v1/sessions/current")
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (204, True)
    gone = await visitor("GET", "/v1/whoami")
    assert (gone.status, gone.code) == (401, "invalid_credentials")


async def test_a_page_of_others_cannot_act(served: Served, admin: Client) -> None:
    visitor, _ = await signed_in(served, admin)
    job = {"schedule": "every 1h", "handler": "h"}
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await visitor("POST", "/v1/jobs", job, headers=foreign)).code == "csrf_failed"
    wordless = Client(served.port, None, {"cookie": visitor.headers["cookie"]})
    refused = await wordless("POST", "/v1/jobs", job)
    assert (refused.status, refused.code) == (403, "csrf_failed")
    assert (await wordless("GET", "/v1/jobs")).status == 200, "reading changes nothing"


async def test_the_cookie_is_out_of_reach(served: Served) -> None:
    opened = await Client(served.port)("POST", "/v1/sessions", {"key": await served.key()})
    cookie = opened.headers["set-cookie"]
    assert cookie.startswith("__Host-session=")
    assert all(part in cookie for part in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"))


async def test_a_password_opens_and_guessing_is_slowed(served: Served, admin: Client) -> None:
    await signed_in(served, admin)
    anybody = Client(served.port)
    right = {"tenant": "default", "email": "ada@example.org", "password": PASSWORD}
    assert (await anybody("POST", "/v1/sessions", right)).status == 201
    wrong = {**right, "password": "wrong"}
    tries = [await anybody("POST", "/v1/sessions", wrong) for _ in range(5)]
    assert [one.code for one in tries] == ["invalid_credentials"] * 4 + ["rate_limited"]
    nobody = await anybody("POST", "/v1/sessions", {**wrong, "email": "eve@example.org"})
    assert (nobody.status, nobody.code) == (401, "invalid_credentials")
    assert nobody.json["detail"] == tries[0].json["detail"], "both are told the same"
    short = await admin("POST", "/v1/members", {**ADA, "email": "bob@example.org"})
    weak = {"code": short.json["code"], "password": "short"}
    refused = await anybody("POST", "/v1/sessions", weak)
    assert (refused.status, pointers(refused)) == (400, ["/password"])
    neither = await anybody("POST", "/v1/sessions", {"email": "ada@example.org"})
    assert (neither.status, pointers(neither)) == (400, ["/key"])


async def test_a_session_ends_with_its_member_its_key_and_its_time(
    served: Served, admin: Client
) -> None:
    visitor, member = await signed_in(served, admin)
    assert (await admin("DELETE", f"/v1/members/{member}")).status == 204
    assert (await visitor("GET", "/v1/whoami")).status == 401
    made = (await admin("POST", "/v1/api-keys", {"name": "ui"})).json
    opened = await Client(served.port)("POST", "/v1/sessions", {"key": made["secret"]})
    by_key = browser(served, opened)
    assert (await by_key("GET", "/v1/whoami")).json["key"]["id"] == made["id"]
    await admin("DELETE", f"/v1/api-keys/{made['id']}")
    assert (await by_key("GET", "/v1/whoami")).status == 401
    idle, _ = await signed_in(served, admin)
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.sessions SET seen_at = now() - interval '31 min'")
    assert (await idle("GET", "/v1/whoami")).status == 401


async def test_no_secret_of_a_person_is_kept(served: Served, admin: Client) -> None:
    visitor, _ = await signed_in(served, admin)
    token = visitor.headers["cookie"].partition("=")[2]
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        for table in ("members", "sessions", "audit", "outbox"):
            rows = await connection.fetch(f"SELECT t::text AS line FROM betimes.{table} AS t")
            told = " ".join(row["line"] for row in rows)
            assert token not in told
            assert PASSWORD not in told


async def test_a_device_is_let_in(served: Served, admin: Client) -> None:
    anybody = Client(served.port)
    begun = (await anybody("POST", "/v1/auth/device", {"name": "laptop"})).json
    assert begun["verification_uri"].endswith("/device")
    ask = {"device_code": begun["device_code"]}
    waiting = await anybody("POST", "/v1/auth/device/token", ask)
    assert (waiting.status, waiting.code) == (400, "authorization_pending")
    hasty = await anybody("POST", "/v1/auth/device/token", ask)
    assert (hasty.status, hasty.code) == (400, "slow_down")
    answer = {"user_code": begun["user_code"].lower().replace("-", " ")}
    told = await admin("POST", "/v1/auth/device/answer", answer)
    assert (told.status, told.json) == (200, {"name": "laptop", "approved": True})
    token = await anybody("POST", "/v1/auth/device/token", ask)
    assert token.status == 200, token.body
    me = (await served.client(token.json["token"])("GET", "/v1/whoami")).json
    assert me["key"]["kind"] == "sk"
    assert "tenants:admin" not in me["key"]["scopes"]
    again = await anybody("POST", "/v1/auth/device/token", ask)
    assert (again.status, again.code) == (400, "expired_token")
    twice = await admin("POST", "/v1/auth/device/answer", answer)
    assert (twice.status, twice.code) == (404, "not_found")


async def test_a_device_gets_no_more_than_the_person_has(served: Served) -> None:
    anybody = Client(served.port)
    begun = (await anybody("POST", "/v1/auth/device")).json
    reader = served.client(await served.key(kind="rk"))
    refused = await reader("POST", "/v1/auth/device/answer", {"user_code": begun["user_code"]})
    assert (refused.status, refused.code) == (403, "scope_missing")
    little = served.client(await served.key(kind="sk", scopes=["jobs:read"]))
    await little("POST", "/v1/auth/device/answer", {"user_code": begun["user_code"]})
    ask = {"device_code": begun["device_code"]}
    token = (await anybody("POST", "/v1/auth/device/token", ask)).json["token"]
    me = (await served.client(token)("GET", "/v1/whoami")).json
    assert me["key"]["scopes"] == ["jobs:read"]


async def test_a_device_may_be_refused_or_too_late(served: Served, admin: Client) -> None:
    anybody = Client(served.port)
    begun = (await anybody("POST", "/v1/auth/device")).json
    no = {"user_code": begun["user_code"], "approve": False}
    assert (await admin("POST", "/v1/auth/device/answer", no)).json["approved"] is False
    ask = {"device_code": begun["device_code"]}
    assert (await anybody("POST", "/v1/auth/device/token", ask)).code == "access_denied"
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.device_grants SET expires_at = now()")
    assert (await anybody("POST", "/v1/auth/device/token", ask)).code == "expired_token"
