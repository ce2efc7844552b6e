"""Taking over from others, against a real service."""

import json
import sys
from pathlib import Path

import pytest

from api_kit import Served
from cli_kit import acall, call

pytestmark = pytest.mark.db

CRONTAB = """MAILTO=ops@example.org
30 2 * * * /usr/local/bin/backup --full
*/15 * * * * /usr/bin/poll
@reboot /usr/bin/start
"""
MANIFEST = """apiVersion: batch/v1
kind: CronJob
metadata: {name: sync, namespace: data}
spec:
  schedule: "*/10 * * * *"
  timeZone: Europe/Oslo
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}
"""
BEAT = """from celery import Celery
from celery.schedules import crontab
app = Celery("proj")
app.conf.timezone = "Europe/Oslo"
app.conf.beat_schedule = {
    "nightly": {"task": "proj.nightly", "schedule": crontab(minute=30, hour=4), "kwargs": {"a": 1}},
}
"""
JOBS = """from apscheduler.schedulers.background import BackgroundScheduler
scheduler = BackgroundScheduler(timezone="Europe/Oslo")
scheduler.add_job("os:getcwd", "cron", id="weekly", day_of_week=0, hour=6)
"""

RQ = """import os
from redis import Redis
from rq.cron import CronScheduler
scheduler = CronScheduler(connection=Redis())
scheduler.register(os.getcwd, queue_name="mail", cron="30 4 * * *", name="nightly")
scheduler.get_jobs()[0].func_name = "os.getcwd"
"""
SCHEDULE = {
    "Name": "report", "ScheduleExpression": "cron(30 2 ? * MON-FRI *)", "State": "ENABLED",
    "ScheduleExpressionTimezone": "Europe/Stockholm", "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": "arn:aws:lambda:eu-north-1:123456789012:function:report", "Input": "{}"},
}  # fmt: skip


def write(home: Path, name: str, text: str) -> None:
    (home / name).write_text(text, encoding="utf-8")


async def test_a_crontab_is_taken_over_once_and_then_kept_in_step(home: Path) -> None:
    write(home, "old", CRONTAB)
    tried = await acall("import", "crontab", "old", "--tz", "Europe/Oslo", "--dry-run", "--shadow")
    assert tried.code == 0, tried.err
    assert "fires until" in tried.out
    assert "all the same" in tried.out
    assert "refused   line 4" in tried.out
    assert "2 read, 1 refused; 2 would be created" in tried.err
    assert (await acall("job", "list", "-o", "name")).out == ""
    done = await acall("import", "crontab", "old", "--tz", "Europe/Oslo")
    assert "2 created, 0 changed" in done.err, done.err
    again = await acall("import", "crontab", "old", "--tz", "Europe/Oslo")
    assert "0 created, 0 changed, 0 deleted, 2 as they were" in again.err, again.err
    jobs = json.loads((await acall("job", "list", "-o", "json", "--view", "full")).out)
    backup = next(job for job in jobs if "backup" in job["name"])
    assert backup["payload"]["command"] == "/usr/local/bin/backup --full"
    assert backup["schedule"]["timezone"] == "Europe/Oslo"
    assert backup["metadata"] == {"mailto": "ops@example.org"}
    write(home, "old", CRONTAB.replace("*/15 * * * * /usr/bin/poll\n", ""))
    pruned = await acall("import", "crontab", "old", "--tz", "Europe/Oslo", "--prune", "--yes")
    assert "0 created, 0 changed, 1 deleted, 1 as they were" in pruned.err, pruned.err


async def test_strictly_all_or_nothing(home: Path) -> None:
    write(home, "old", CRONTAB)
    told = await acall("import", "crontab", "old", "--utc", "--strict", "-o", "json")
    assert told.code == 1
    rows = json.loads(told.out)
    assert [row["verdict"] for row in rows] == ["setting", "imported", "imported", "refused"]
    assert "nothing was imported" in told.err
    assert (await acall("job", "list", "-o", "name")).out == ""


async def test_what_is_suspended_there_is_paused_here(home: Path) -> None:
    write(home, "sync.yaml", MANIFEST)
    write(home, "chart.yaml", "metadata: {name: {{ .Values.name }}}\n")
    told = await acall("import", "kubernetes", ".", "--shadow")
    assert "1 read, 1 refused; 1 created" in told.err, told.err
    assert "a template is to be rendered first" in told.out
    job = json.loads((await acall("job", "get", "data~sync", "-o", "json")).out)
    assert job["status"]["state"] == "paused"
    assert job["schedule"]["overlap"] == "allow"


async def test_what_is_suspended_later_is_paused_then(home: Path, served: Served) -> None:
    write(home, "sync.yaml", MANIFEST.replace("suspend: true", "suspend: false"))
    await acall("import", "kubernetes", "sync.yaml")
    write(home, "sync.yaml", MANIFEST)
    admin = await served.admin()
    for _ in range(2):
        told = await acall("import", "kubernetes", "sync.yaml")
        assert "0 created" in told.err
    job = json.loads((await acall("job", "get", "data~sync", "-o", "json")).out)
    assert job["status"]["state"] == "paused"
    assert job["status"]["pause"]["reason"] == "suspended where it came from"
    acts = [one["action"] for one in (await admin("GET", "/v1/audit")).json["items"]]
    assert "jobs.pause" in acts, "it was there already"


async def test_schedules_of_eventbridge(home: Path) -> None:
    disabled = {**SCHEDULE, "Name": "off", "State": "DISABLED"}
    write(home, "one.json", json.dumps([SCHEDULE, disabled, {"Name": "b", "EventPattern": "{}"}]))
    tried = await acall("import", "eventbridge", "one.json", "--dry-run", "--shadow")
    assert "all the same" in tried.out, tried.err
    assert "waits for events" in tried.out
    assert "2 read, 1 refused; 2 would be created" in tried.err
    assert "2 created" in (await acall("import", "eventbridge", "one.json")).err
    jobs = {job["name"]: job for job in json.loads((await acall("job", "list", "-o", "json")).out)}
    assert jobs["report"]["handler"] == "report"
    assert jobs["off"]["status"]["state"] == "paused"
    again = await acall("import", "eventbridge", "one.json")
    assert "0 created, 0 changed, 0 deleted, 2 as they were" in again.err, again.err


async def test_what_rq_repeats(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "rq_jobs.py", RQ)
    told = await acall("import", "rq", "rq_jobs:scheduler", "--shadow")
    assert "1 created" in told.err, told.err
    assert "all the same" in told.out
    (job,) = json.loads((await acall("job", "list", "-o", "json")).out)
    assert (job["name"], job["queue"], job["handler"]) == ("nightly", "mail", "os.getcwd")
    monkeypatch.delitem(sys.modules, "rq_jobs", raising=False)


async def test_objects_of_the_users_own_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "beat_app.py", BEAT)
    write(home, "beat_jobs.py", JOBS)
    celery = await acall("import", "celery", "beat_app:app", "--shadow")
    assert "1 created" in celery.err, celery.err
    assert "366 fires" in celery.out or "365 fires" in celery.out
    jobs = await acall("import", "apscheduler", "beat_jobs:scheduler", "-o", "json")
    assert json.loads(jobs.out)[0]["schedule"]["expr"] == "0 6 * * mon"
    listed = await acall("job", "list", "--query", "sort([].handler)", "-o", "json")
    assert json.loads(listed.out) == ["os:getcwd", "proj.nightly"]
    for name in ("beat_app", "beat_jobs"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert "expected to find nowhere:app" in call("import", "celery", "nowhere:app").err
    assert call("import", "celery", "nowhere").code == 2


async def test_a_trial_needs_no_service(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, "old", CRONTAB)
    monkeypatch.setenv("BETIMES_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("BETIMES_RETRY_FOR", "0")
    told = await acall("import", "crontab", "old", "--utc", "--dry-run", "--timeout", "1")
    assert told.code == 0
    assert "the service was not asked" in told.err
    assert call("import", "crontab", "old", "--utc", "--timeout", "1").code == 1


async def test_what_was_taken_over_can_be_given_back(home: Path) -> None:
    write(home, "old", CRONTAB)
    await acall("import", "crontab", "old", "--tz", "Europe/Oslo")
    told = await acall("export", "--format", "crontab")
    assert told.code == 0, told.err
    assert "30 2 * * * /usr/local/bin/backup --full" in told.out.splitlines()
    write(home, "back", told.out)
    again = await acall("import", "crontab", "back", "--set", "back", "--dry-run", "-o", "json")
    assert [row["verdict"] for row in json.loads(again.out)].count("imported") == 2
    refused = await acall("export", "--format", "kubernetes", "--to", "jobs.yaml")
    assert refused.code == 1
    assert "needs an image" in refused.err


async def test_a_crontab_is_kept_in_the_service(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "mine", "0 5 * * * backup\n*/5 * * * * poll %in%\n")
    put = await acall("crontab", "mine", "--tz", "Europe/Oslo")
    assert put.code == 0, put.err
    listed = await acall("crontab", "-l")
    lines = [line for line in listed.out.splitlines() if not line.startswith("#")]
    assert lines[0] == "CRON_TZ=Europe/Oslo"
    assert sorted(lines[1:]) == ["*/5 * * * * poll%in", "0 5 * * * backup"]
    monkeypatch.setattr("betimes.cli.machine.somebody_types", lambda: True)
    monkeypatch.setattr("click.edit", lambda text, **_: text.replace("0 5 * * * backup\n", ""))
    edited = await acall("crontab", "-e")
    assert edited.code == 0, edited.err
    assert "1 deleted, 1 as they were" in edited.err, edited.err
    write(home, "wrong", "0 5 * * * backup\n99 * * * * x\n")
    refused = await acall("crontab", "wrong")
    assert refused.code == 1
    assert "0 5 * * * backup" not in (await acall("crontab", "-l")).out
    await acall("job", "create", "other", "--schedule", "every 1h", "--handler", "h")
    assert (await acall("crontab", "-r", "--yes")).err == "betimes: 1 jobs were deleted\n"
    assert (await acall("crontab", "-l")).out == ""
    assert (await acall("job", "list", "-o", "name")).out == "job/other\n"
    assert call("crontab").code == 2
    assert call("crontab", "-l", "-r").code == 2
