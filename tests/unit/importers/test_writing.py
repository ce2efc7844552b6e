"""The way back: what is written is read again as the same jobs, or is not written."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from betimes.importers.crontab import Where, read_crontab
from betimes.importers.kubernetes import Where as Cluster
from betimes.importers.kubernetes import read_manifests
from betimes.importers.writing import write_cron_jobs, write_crontab

CORPUS = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "importers" / "crontabs.yaml").read_text("utf-8")
)


def whole(source: dict[str, Any]) -> str:
    return str(source["name"])


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_crontabs_there_and_back(source: dict[str, Any]) -> None:
    system = source.get("system", False)
    where = Where(timezone=source.get("tz"), flavour="cronie", system=system)
    jobs = [one.job for one in read_crontab(source["text"], where) if one.job is not None]
    written = write_crontab(jobs)
    if system:
        assert len(written.refused) == len(jobs)
        assert all("it runs as root" in reason for _, reason in written.refused)
        return
    assert written.refused == []
    again = read_crontab("".join(f"{line}\n" for line in written.lines), where)
    found = [one.job for one in again if one.job is not None]
    assert [_essence(one) for one in found] == [_essence(one) for one in jobs]


def _essence(job: Any) -> Any:
    payload = {**job["payload"], "env": job["payload"].get("env", {})}
    return payload, job["schedule"]["expr"], job["schedule"]["timezone"]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"schedule": {"type": "interval", "every": "PT5M"}}, "only cron schedules"),
        ({"schedule": {"type": "cron", "expr": "0 0 5 * * *"}}, "other than five fields"),
        ({"schedule": {"type": "cron", "expr": "0 0 L * *"}}, "knows no `L`"),
        ({"schedule": {"type": "cron", "expr": "H 5 * * *"}}, "knows no `H`"),
        ({"schedule": {"type": "cron", "expr": "30 2 * * *", "dst": {"gap": "skip"},
                       "timezone": "Europe/Berlin"}}, "at other times"),
        ({"schedule": {"type": "cron", "expr": "0 0 13 * 5", "day_match": "and"}},
         "at other times"),
        ({"schedule": {"type": "cron", "expr": "0 0 * * *"}, "payload": {}}, "needs a command"),
        ({"schedule": {"type": "cron", "expr": "0 0 * * *"}, "payload": {"command": "a\nb"}},
         "several lines"),
    ],
)  # fmt: skip
def test_what_a_crontab_cannot_say_is_left_out(job: dict[str, Any], reason: str) -> None:
    written = write_crontab([{"name": "x", "payload": {"command": "c"}, **job}])
    assert written.lines == []
    assert reason in written.refused[0][1]


def test_a_variable_cannot_be_taken_back() -> None:
    schedule = {"type": "cron", "expr": "0 0 * * *"}
    jobs = [
        {"name": "a", "schedule": schedule, "payload": {"command": "c", "env": {"A": "1"}}},
        {"name": "b", "schedule": schedule, "payload": {"command": "c"}},
    ]
    written = write_crontab(jobs)
    assert written.lines == ["CRON_TZ=UTC", 'A="1"', "# a", "0 0 * * * c"]
    assert written.refused == [("b", "a variable that was set for a line above cannot be unset")]


def a_job(**schedule: Any) -> dict[str, Any]:
    members = {
        "type": "cron", "expr": "30 2 * * *", "dialect": "kubernetes", "timezone": "Europe/Berlin",
        "dst": {"gap": "skip", "overlap": "both"}, "overlap": "replace", **schedule,
    }  # fmt: skip
    payload = {"image": "x:1", "command": ["a"], "env": {"K": "v"}}
    return {"name": "j", "group": "g", "schedule": members, "payload": payload,
            "retry": {"max_attempts": 3}}  # fmt: skip


def test_cron_jobs_there_and_back() -> None:
    job = a_job()
    written = write_cron_jobs([job])
    assert written.refused == []
    text = yaml.safe_dump_all(written.documents)
    (verdict,) = read_manifests(yaml.safe_load_all(text), Cluster())
    assert verdict.job is not None
    again = verdict.job
    assert (again["name"], again["group"], again["payload"]) == ("j", "g", job["payload"])
    assert again["retry"]["max_attempts"] == 3
    assert again["schedule"]["overlap"] == "replace"


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (a_job(dst={}), "at other times"),
        (a_job(overlap="buffer_all"), "knows no policy"),
        ({**a_job(), "payload": {"command": "c"}}, "needs an image"),
        (a_job(expr="0 0 * * 7", dialect="unix"), "Sunday is 0 there"),
    ],
)
def test_what_kubernetes_cannot_say_is_left_out(job: dict[str, Any], reason: str) -> None:
    written = write_cron_jobs([job])
    assert written.documents == []
    assert reason in written.refused[0][1]
