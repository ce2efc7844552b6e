"""Tokens that need no key: which are, for how long, and for whom."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.api.leasing import read_token, write_own_token
from betimes.domain.ids import from_text

VERBS = ("progress", "logs", "extend", "complete", "fail", "cancel", "release", "snooze")
LINES = {"lines": [{"message": "forged"}]}


async def held_by(client: Client, admin: Client, **more: Any) -> tuple[str, str]:
    """A worker with a run: its id and its token."""
    queue = more.get("queue", "default")
    await admin("POST", "/v1/runs", {"handler": "noop", "queue": queue})
    asked = {"name": "w", "handlers": ["noop"], "slots": 5, "queues": [queue]}
    worker = (await client("POST", "/v1/workers", asked)).json["worker_id"]
    got = await client("POST", f"/v1/workers/{worker}/lease", {"max": 1, "wait": 0})
    return worker, got.json["runs"][0]["lease_id"]


def own_of(served: Served, token: str) -> str:
    """The token that a target would have had for the same attempt."""
    secret = served.service.lease_secret
    return write_own_token(secret, DEFAULT, read_token(secret, DEFAULT, token), queue="default")


def prefixed(token: str) -> str:
    """The attack: tenant and run, which answers tell, before what is sealed of a token."""
    sealed, _, run = token.removeprefix("lea_").partition(".")
    data = urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    named = DEFAULT.bytes + from_text("run", run).bytes
    return "lea_" + urlsafe_b64encode(named + data).decode().rstrip("=")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_workers_token_does_not_become_one_that_needs_no_key(
    served: Served, admin: Client, verb: str
) -> None:
    worker = served.client(await served.key(kind="wk"))
    _, token = await held_by(worker, admin)
    body = LINES if verb == "logs" else {"by": "PT1M"} if verb == "extend" else {}
    for forged in (prefixed(token), token):
        answer = await served.client(None)("POST", f"/v1/leases/{forged}/{verb}", body)
        assert (answer.status, answer.code) == (401, "missing_credentials"), answer.body
    beside = await worker("POST", f"/v1/leases/{prefixed(token)}/progress", {"percent": 1})
    assert beside.status == 404, "nor is it a token of any kind"
    assert (await worker("POST", f"/v1/leases/{token}/complete", {})).status == 200


async def test_a_revoked_key_leaves_no_token_behind(served: Served, admin: Client) -> None:
    text = await served.key(kind="wk")
    worker = served.client(text)
    _, token = await held_by(worker, admin)
    assert (await admin("DELETE", f"/v1/api-keys/{text.split('_')[2]}")).status == 204
    assert (await worker("POST", f"/v1/leases/{token}/extend", {"by": "PT1M"})).status == 401
    forged = await served.client(None)("POST", f"/v1/leases/{prefixed(token)}/extend", {})
    assert forged.status == 401


async def test_a_suspended_tenant_hears_of_no_token(served: Served, admin: Client) -> None:
    """What needs no key is refused as keys are; afterwards it is as good as before."""
    _, token = await held_by(admin, admin)
    own, anybody = own_of(served, token), served.client(None)
    stopped = {"mode": "stop_all", "reason": "unpaid"}
    assert (await anybody("POST", f"/v1/leases/{own}/progress", {"percent": 1})).status == 202
    assert (await admin("POST", "/v1/tenants/default/suspend", stopped)).status == 200
    for verb, body in (("progress", {"percent": 2}), ("logs", LINES), ("complete", {"result": 1})):
        refused = await anybody("POST", f"/v1/leases/{own}/{verb}", body)
        assert (refused.status, refused.code) == (403, "tenant_suspended"), refused.body
        assert "unpaid" in refused.json["detail"]
    assert (await admin("POST", "/v1/tenants/default/resume")).status == 200
    assert (await anybody("POST", f"/v1/leases/{own}/complete", {"result": 1})).status == 200


async def test_a_link_ends_with_its_giver_and_its_tenant(served: Served, admin: Client) -> None:
    text = await served.key(kind="sk")
    giver, anybody = served.client(text), served.client(None)
    blob = (await giver("POST", "/v1/blobs", raw=b"x", headers={"content-type": "text/plain"})).json
    link = (await giver("POST", f"/v1/blobs/{blob['id']}/grants", {})).json["path"]
    assert (await anybody("GET", link)).status == 200
    await admin("POST", "/v1/tenants/default/suspend", {"mode": "stop_all"})
    assert (await anybody("GET", link)).status == 404
    await admin("POST", "/v1/tenants/default/resume")
    assert (await anybody("GET", link)).status == 200
    await admin("DELETE", f"/v1/api-keys/{text.split('_')[2]}")
    assert (await anybody("GET", link)).status == 404


async def test_a_key_that_is_bound_to_a_queue_speaks_for_no_other(
    served: Served, admin: Client
) -> None:
    """Neither for their workers nor about their runs, however it comes to know of them."""
    mail = served.client(await served.key(kind="wk", queues=["mail"]))
    other = served.client(await served.key(kind="wk", queues=["print"]))
    theirs, token = await held_by(mail, admin, queue="mail")
    place = f"/v1/workers/{theirs}"
    tries = [
        await other("POST", f"{place}/leave"),
        await other("POST", f"{place}/heartbeat", {"state": "draining"}),
        await other("POST", f"{place}/lease", {"wait": 0}),
        *[await other("POST", f"/v1/leases/{token}/{verb}", {}) for verb in ("complete", "fail")],
        await other("POST", f"/v1/leases/{token}/logs", LINES),
        await other("POST", f"/v1/leases/{token}/extend", {"by": "PT1M"}),
    ]
    assert [one.status for one in tries] == [404] * len(tries)
    many = {"items": [{"lease_id": token, "action": "complete"}]}
    assert (await other("POST", "/v1/leases/batch", many)).json["items"][0]["status"] == 404
    mine = (await other("POST", "/v1/workers", {"name": "p", "queues": ["print"]})).json
    running = {"running": [{"lease_id": token}]}
    beat = await other("POST", f"/v1/workers/{mine['worker_id']}/heartbeat", running)
    assert beat.json["lost"] == [token]
    shown = (await admin("GET", place)).json
    assert (shown["state"], shown["queues"]) == ("online", ["mail"])
    assert (await mail("POST", f"/v1/leases/{token}/complete", {})).status == 200
    assert (await mail("POST", f"{place}/leave")).status == 204
