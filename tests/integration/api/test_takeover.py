"""What others ran, taken over by one request."""

from typing import Any

import pytest

from api_kit import Client, Served

CRONTAB = b"""MAILTO=nobody
# nightly
0 2 * * * backup --all
99 * * * * broken
@daily report
"""


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": ["true"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": {"name": name},
        "spec": {
            "schedule": "0 3 * * *",
            "timeZone": "Europe/Oslo",
            "jobTemplate": {"spec": {"template": template}},
            **spec,
        },
    }


async def test_a_crontab_becomes_jobs_and_what_does_not_is_told(admin: Client) -> None:
    path = "/v1/import/crontab?timezone=Europe/Oslo&queue=cron"
    dry = await admin("POST", f"{path}&dry_run=true", raw=CRONTAB)
    assert (dry.status, dry.json["dry_run"], len(dry.json["created"])) == (200, True, 2), dry.body
    assert (await admin("GET", "/v1/jobs")).json["items"] == []
    made = await admin("POST", path, raw=CRONTAB)
    assert made.status == 201, made.body
    (skipped,) = made.json["skipped"]
    assert "4" in skipped["place"]
    jobs = (await admin("GET", "/v1/jobs?sort=name")).json["items"]
    assert {job["id"] for job in jobs} == set(made.json["created"])
    assert {job["queue"] for job in jobs} == {"cron"}
    assert {job["schedule"]["timezone"] for job in jobs} == {"Europe/Oslo"}
    again = await admin("POST", path, raw=CRONTAB)
    assert (again.json["created"], len(again.json["skipped"])) == ([], 3), "nothing is doubled"


async def test_cron_jobs_become_jobs_and_what_is_suspended_is_paused(admin: Client) -> None:
    items = [manifest("one"), manifest("two", suspend=True), {"kind": "Pod"}]
    made = await admin("POST", "/v1/import/kubernetes", {"kind": "List", "items": items})
    assert made.status == 201, made.body
    assert len(made.json["created"]) == 2
    assert [one["place"] for one in made.json["skipped"]] == ["document 3"]
    states = {
        job["status"]["state"]: job["schedule"]["timezone"]
        for job in (await admin("GET", "/v1/jobs")).json["items"]
    }
    assert states == {"active": "Europe/Oslo", "paused": "Europe/Oslo"}


@pytest.mark.parametrize(
    ("query", "raw", "code"),
    [
        ("", b"\xff\xfe", "invalid_parameter"),
        ("", b"* * * * * a\x00b", "invalid_parameter"),
        ("?prefix=UPPER", b"", "invalid_parameter"),
        ("?nope=1", b"", "unknown_parameter"),
        (
            "",
            b"\n".join(b"%d %d * * * x" % (n % 60, n // 60) for n in range(1001)),
            "batch_too_large",
        ),
    ],
)
async def test_what_is_no_crontab_is_refused(
    admin: Client, query: str, raw: bytes, code: str
) -> None:
    assert (await admin("POST", f"/v1/import/crontab{query}", raw=raw)).code == code


async def test_odd_manifests_are_told_not_tripped_over(admin: Client) -> None:
    odd = [manifest("a", concurrencyPolicy=["x"]), manifest("b", schedule=5), {"metadata": 5}, {}]
    told = await admin("POST", "/v1/import/kubernetes", {"items": odd})
    assert (told.status, told.json["created"], len(told.json["skipped"])) == (201, [], 4)


async def test_quotas_hold(served: Served, admin: Client) -> None:
    tenant = await served.tenant("small")
    await admin("PUT", "/v1/tenants/small/quotas", {"quotas": {"jobs": 1}})
    small = served.client(await served.key(tenant))
    refused = await small("POST", "/v1/import/crontab", raw=CRONTAB)
    assert (refused.status, refused.code) == (429, "quota_exceeded")


async def test_a_crontab_without_end_is_not_read(admin: Client) -> None:
    """Reading each of these lines would take longer than the test may."""
    lines = b"# a comment costs nothing\n" * 10_000 + b"* * * * * true\n" * 60_000
    asked = {"content-type": "text/plain"}
    refused = await admin(
        "POST", "/v1/import/crontab?dry_run=true", raw=lines[: 1 << 20], headers=asked
    )
    assert (refused.status, refused.code) == (413, "batch_too_large")


async def test_jobs_are_written_as_crontabs_and_cron_jobs(admin: Client) -> None:
    """What is written is taken back by the importer of the same format."""
    cron = {"type": "cron", "expr": "30 4 * * *", "timezone": "Europe/Stockholm"}
    shell = {"name": "tidy", "handler": "shell", "schedule": cron, "payload": {"command": "tidy"}}
    image = {"name": "report", "handler": "h", "schedule": cron, "payload": {"image": "r:1"}}
    every = {"name": "often", "handler": "h", "schedule": "every 7m"}
    for job in (shell, image, every):
        assert (await admin("POST", "/v1/jobs", job)).status == 201
    told = (await admin("GET", "/v1/export?format=crontab")).json
    assert told["text"] == "CRON_TZ=Europe/Stockholm\n# tidy\n30 4 * * * tidy\n"
    assert (told["format"], told["jobs"]) == ("crontab", [])
    assert {one["name"] for one in told["left_out"]} == {"report", "often"}
    back = await admin(
        "POST",
        "/v1/import/crontab?dry_run=true&flavour=cronie&prefix=back",
        raw=told["text"].encode(),
        headers={"content-type": "text/plain"},
    )
    assert (back.status, len(back.json["created"])) == (200, 1), back.body
    told = (await admin("GET", "/v1/export?format=kubernetes")).json
    assert {one["name"] for one in told["left_out"]} == {"tidy", "often"}, told["left_out"]
    (document,) = told["manifests"]["items"]
    assert (document["kind"], document["spec"]["timeZone"]) == ("CronJob", "Europe/Stockholm")
    again = await admin("POST", "/v1/import/kubernetes?dry_run=true", told["manifests"])
    assert again.status == 200, again.body
    pages, cursor = 0, ""
    while True:
        page = (await admin("GET", f"/v1/export?format=crontab&limit=1{cursor}")).json
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert pages >= 3
