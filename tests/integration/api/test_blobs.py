"""Blobs over the API: classes of retention, links, and what refers to them."""

import re
from datetime import timedelta
from typing import Any

import pytest

from api_kit import DEFAULT, Client, Served
from betimes.api.grants import Grant, read_grant, write_grant
from betimes.api.problem import Trouble
from betimes.domain.ids import from_text
from betimes.store.pool import Lane

CANARY = b"canary-5b8e2f91" * 100


async def a_blob(ask: Client, content: bytes = CANARY, query: str = "") -> Any:
    made = await ask("POST", f"/v1/blobs{query}", raw=content)
    assert made.status == 201, made.body
    return made.json


async def test_a_blob_is_kept_as_long_as_its_class_says(admin: Client) -> None:
    """Or as long as its own time."""
    days = {}
    for query in ("", "?retention=brief", "?retention=long", "?ttl=PT48H"):
        blob = await a_blob(admin, query=query)
        created, expires = blob["created_at"][:10], blob["expires_at"][:10]
        days[query] = (blob["retention"], created < expires)
    assert days == {
        "": ("standard", True),
        "?retention=brief": ("brief", True),
        "?retention=long": ("long", True),
        "?ttl=PT48H": ("standard", True),
    }
    assert (await admin("POST", "/v1/blobs?retention=ever", raw=b"x")).status == 400


async def test_the_database_holds_it_sealed(served: Served, admin: Client) -> None:
    await a_blob(admin)
    async with served.desk.database.connection(Lane.ENGINE) as connection:
        rows = await connection.fetch("SELECT content FROM betimes.blobs")
    assert all(CANARY[:15] not in row["content"] for row in rows)


async def test_a_link_reads_one_blob_and_nothing_else(served: Served, admin: Client) -> None:
    """Without a key, as long as it lasts."""
    blob, other = await a_blob(admin), await a_blob(admin, b"other")
    made = await admin("POST", f"/v1/blobs/{blob['id']}/grants", {"expires_in": "PT5M"})
    assert made.status == 201, made.body
    anybody = served.client(None)
    got = await anybody("GET", made.json["path"])
    assert (got.status, got.body) == (200, CANARY)
    assert got.headers["content-disposition"] == "attachment"
    assert (await anybody("GET", f"/v1/blobs/{blob['id']}")).status == 401
    text: str = made.json["grant"]
    for at in range(4, len(text), 5):
        wrong = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        assert (await anybody("GET", f"/v1/grants/{wrong}")).status == 404
    assert (await anybody("GET", "/v1/grants/gra_")).status == 404
    assert (await anybody("GET", f"/v1/grants/{other['id']}")).status == 404
    for wrong_time in ("PT0S", "P8D", "-PT5M"):
        asked = {"expires_in": wrong_time}
        refused = await admin("POST", f"/v1/blobs/{blob['id']}/grants", asked)
        assert refused.status == 400, refused.body


async def test_a_link_is_over_when_its_time_is(served: Served, admin: Client) -> None:
    blob = await a_blob(admin)
    now = served.service.now()
    secret, giver = served.service.grant_secret, (await served.key()).split("_")[2]
    for until, good in ((now + timedelta(seconds=5), True), (now - timedelta(seconds=1), False)):
        text = write_grant(secret, Grant(DEFAULT, from_text("blob", blob["id"]), until, giver))
        answer = await served.client(None)("GET", f"/v1/grants/{text}")
        assert (answer.status == 200) is good
    text = write_grant(bytes(32), Grant(DEFAULT, from_text("blob", blob["id"]), now, giver))
    with pytest.raises(Trouble):
        read_grant(secret, text, now=now - timedelta(hours=1))


async def test_a_payload_by_reference_is_given_to_who_holds_the_run(
    served: Served, admin: Client
) -> None:
    """A worker gets a link that lasts as long as its lease; a reader of payloads gets the rest."""
    blob = await a_blob(admin)
    run = (await admin("POST", "/v1/runs", {"handler": "h", "payload_ref": blob["id"]})).json
    assert (await admin("GET", f"/v1/runs/{run['id']}/payload")).body == CANARY
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    (leased,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    assert leased["payload_ref"] == blob["id"]
    assert (await served.client(None)("GET", leased["payload_path"])).body == CANARY


async def test_a_result_by_reference_is_followed(served: Served, admin: Client) -> None:
    """The run shows the reference; its result is what it stands for."""
    blob = await a_blob(admin)
    run = (await admin("POST", "/v1/runs", {"handler": "h"})).json
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    (leased,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    result = {"result_ref": blob["id"], "bytes": len(CANARY)}
    await admin("POST", f"/v1/leases/{leased['lease_id']}/complete", {"result": result})
    shown = (await admin("GET", f"/v1/runs/{run['id']}?view=full")).json
    assert shown["result_ref"] == blob["id"]
    assert (await admin("GET", f"/v1/runs/{run['id']}/result")).body == CANARY
    other = served.client(await served.key(await served.tenant("other")))
    assert (await other("GET", f"/v1/runs/{run['id']}/result")).status == 404


async def test_what_a_tenant_hides_is_hidden_in_answers(served: Served, admin: Client) -> None:
    """By path in payloads and results, by name in headers of evidence, without touching them."""
    hide = {"targets": {"redact_paths": ["/card/number"], "redact_headers": ["x-session"]}}
    slug = (await admin("GET", "/v1/whoami")).json["tenant"]
    tenant = slug["slug"] if isinstance(slug, dict) else slug
    patched = await admin("PATCH", f"/v1/tenants/{tenant}", {"settings": hide})
    assert patched.status == 200, patched.body
    served.service.credentials.forget_all()
    payload = {"card": {"number": "4111", "name": "Ada"}}
    run = (await admin("POST", "/v1/runs", {"handler": "h", "payload": payload})).json
    shown = (await admin("GET", f"/v1/runs/{run['id']}?view=full")).json
    assert shown["payload"] == {"card": {"number": "[hidden]", "name": "Ada"}}
    raw = await admin("GET", f"/v1/runs/{run['id']}/payload")
    assert raw.json == shown["payload"]
    worker = (await admin("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    (leased,) = (await admin("POST", f"/v1/workers/{worker}/lease", {"wait": 0})).json["runs"]
    assert leased["payload"] == payload, "who does the work needs all of it"
    evidence = {
        "timings_ms": {"total": 1},
        "headers": {"x-session": "abc", "x-plain": "d"},
        "body": '{"card":{"number":"4111"}}',
    }
    await admin("POST", f"/v1/leases/{leased['lease_id']}/complete", {"result": evidence})
    result = (await admin("GET", f"/v1/runs/{run['id']}?view=full")).json["result"]
    assert result["headers"] == {"x-session": "[hidden]", "x-plain": "d"}
    assert not re.search("4111", str(result))
