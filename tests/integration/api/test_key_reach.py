"""`keys:write` never widens, revives, unbinds or outlives its own key, however it is tried."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from api_kit import Client, Served
from betimes.domain.scopes import OF_KIND, OF_ROLE
from betimes.testing.real_clock import RealClock

SOON = RealClock().now().replace(microsecond=0) + timedelta(days=2)
KEEPS = ["keys:read", "keys:write"]


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def keeper(served: Served, **more: Any) -> Client:
    """Somebody who may do nothing but administer keys."""
    return served.client(await served.key(kind="sk", **{"scopes": KEEPS, **more}))


async def test_a_narrow_key_leaves_wider_ones_alone(served: Served, admin: Client) -> None:
    """The same judge for each verb: rename, bind, extend, rotate, revoke."""
    narrow = await keeper(served)
    wide = (await admin("POST", "/v1/api-keys", {"name": "wide", "kind": "sk"})).json
    place = f"/v1/api-keys/{wide['id']}"
    tries = [
        await narrow("PATCH", place, {"name": "other"}),
        await narrow("PATCH", place, {"ip_allow": ["0.0.0.0/0"]}),
        await narrow("PATCH", place, {"expires_at": text(SOON)}),
        await narrow("POST", f"{place}/rotate", {}),
        await narrow("DELETE", place),
    ]
    assert [one.status for one in tries] == [403] * len(tries)
    assert all("which the caller lacks" in one.json["detail"] for one in tries)
    assert (await served.client(wide["secret"])("GET", "/v1/whoami")).status == 200


async def test_a_key_is_not_unbound_by_one_that_lacks_its_scopes(
    served: Served, admin: Client
) -> None:
    narrow = await keeper(served)
    asked = {"name": "bound", "ip_allow": ["10.0.0.0/8"]}
    bound = (await admin("POST", "/v1/api-keys", asked)).json
    lifted = await narrow("PATCH", f"/v1/api-keys/{bound['id']}", {"ip_allow": ["0.0.0.0/0"]})
    assert lifted.status == 403
    shown = await admin("GET", f"/v1/api-keys/{bound['id']}")
    assert shown.json["ip_allow"] == ["10.0.0.0/8"]


async def test_an_expired_key_stays_so(served: Served, admin: Client) -> None:
    """Neither for one that reaches as far, nor by way of a rotation."""
    old = await served.key(kind="sk", expires_at=SOON - timedelta(days=9))
    place = f"/v1/api-keys/{old.split('_')[2]}"
    for client, status in ((await keeper(served), 403), (admin, 409)):
        revived = await client("PATCH", place, {"expires_at": text(SOON)})
        assert revived.status == status, revived.body
        assert (await client("POST", f"{place}/rotate", {})).status == status
    assert (await served.client(old)("GET", "/v1/whoami")).code == "expired_credentials"
    assert (await admin("PATCH", place, {"name": "was old"})).status == 200, "a name is no life"


async def test_nothing_outlives_the_key_that_made_it(served: Served, admin: Client) -> None:
    brief = await admin("POST", "/v1/api-keys", {"name": "brief", "expires_at": text(SOON)})
    client, place = served.client(brief.json["secret"]), f"/v1/api-keys/{brief.json['id']}"
    free = (await admin("POST", "/v1/api-keys", {"name": "free"})).json
    later = text(SOON + timedelta(seconds=1))
    refused = [
        await client("PATCH", place, {"expires_at": "2100-01-01T00:00:00Z"}),
        await client("POST", "/v1/api-keys", {"name": "for ever"}),
        await client("POST", "/v1/api-keys", {"name": "later", "expires_at": later}),
        await client("POST", f"/v1/api-keys/{free['id']}/rotate", {}),
        await client(
            "POST", "/v1/members", {"email": "a@b.example", "name": "A", "role": "viewer"}
        ),
    ]
    assert [one.status for one in refused] == [403] * len(refused)
    assert all(text(SOON)[:16] in one.json["detail"] for one in refused), refused[0].body
    fine = [
        await client("POST", "/v1/api-keys", {"name": "as long", "expires_at": text(SOON)}),
        await client("POST", f"{place}/rotate", {}),
        await client("PATCH", f"/v1/api-keys/{free['id']}", {"name": "renamed"}),
        await client("PATCH", f"/v1/api-keys/{free['id']}", {"expires_at": later}),
    ]
    assert [one.status for one in fine] == [201, 201, 200, 200], "what lasts is not made to last"
    assert (await client("DELETE", f"/v1/api-keys/{free['id']}")).status == 204


async def test_a_device_does_not_outlive_who_let_it_in(served: Served, admin: Client) -> None:
    brief = await admin("POST", "/v1/api-keys", {"name": "brief", "expires_at": text(SOON)})
    client, anybody = served.client(brief.json["secret"]), served.client(None)
    begun = (await anybody("POST", "/v1/auth/device")).json
    said = await client("POST", "/v1/auth/device/answer", {"user_code": begun["user_code"]})
    assert said.status == 200, said.body
    given = await anybody("POST", "/v1/auth/device/token", {"device_code": begun["device_code"]})
    assert given.json["expires_at"][:19] == text(SOON)[:19]


async def test_a_device_is_not_let_in_by_a_key_that_is_gone(served: Served, admin: Client) -> None:
    made = (await admin("POST", "/v1/api-keys", {"name": "gone"})).json
    client, anybody = served.client(made["secret"]), served.client(None)
    begun = (await anybody("POST", "/v1/auth/device")).json
    await client("POST", "/v1/auth/device/answer", {"user_code": begun["user_code"]})
    assert (await admin("DELETE", f"/v1/api-keys/{made['id']}")).status == 204
    asked = {"device_code": begun["device_code"]}
    refused = await anybody("POST", "/v1/auth/device/token", asked)
    assert refused.code == "access_denied", refused.body


async def test_a_member_who_administers_keeps_every_key_of_the_tenant(
    served: Served, admin: Client
) -> None:
    """Their session ends within the day; what they may do does not."""
    code = (
        await admin("POST", "/v1/members", {"email": "a@b.example", "name": "A", "role": "admin"})
    ).json["code"]
    opened = await served.client(None)("POST", "/v1/sessions", {"code": code})
    cookie = opened.headers["set-cookie"].split(";")[0]
    person = served.client(None)
    person.headers = {"cookie": cookie, "betimes-csrf": opened.json["csrf_token"]}
    made = await person("POST", "/v1/api-keys", {"name": "mine", "kind": "sk"})
    assert made.status == 201, made.body
    worker = await person("POST", "/v1/api-keys", {"name": "w", "kind": "wk"})
    assert worker.status == 201, worker.body
    for one in (made, worker):
        assert (await person("DELETE", f"/v1/api-keys/{one.json['id']}")).status == 204


def test_an_administrator_of_a_tenant_may_do_what_its_widest_key_may() -> None:
    assert OF_ROLE["admin"] == OF_KIND["sk"]


async def test_what_is_taken_from_a_key_is_not_brought_back_by_its_other_edits(
    served: Served, admin: Client
) -> None:
    """A leaked key that renames itself all the time keeps nothing that it is denied meanwhile."""
    leaked = await served.key(kind="sk", scopes=KEEPS)
    place, own = f"/v1/api-keys/{leaked.split('_')[2]}", served.client(leaked)

    async def rename(turn: int) -> None:
        for part in range(10):
            assert (await own("PATCH", place, {"name": f"{turn}-{part}"})).status in (200, 429)

    async def bind() -> None:
        denied = {"expires_at": text(SOON), "ip_allow": ["127.0.0.0/8"]}
        assert (await admin("PATCH", place, denied)).status == 200

    await asyncio.gather(*(rename(turn) for turn in range(4)), bind())
    shown = (await admin("GET", place)).json
    assert (shown["expires_at"] is not None, shown["ip_allow"]) == (True, ["127.0.0.0/8"])
