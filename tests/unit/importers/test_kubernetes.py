"""CronJobs of every kind: each document imported faithfully, or refused with a reason."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from betimes.importers import Verdict, compare
from betimes.importers.kubernetes import Where, read_manifests

CORPUS = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "importers" / "manifests.yaml").read_text("utf-8")
)
AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)


def manifest(schedule: str, source: dict[str, Any]) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "job"},
        "spec": {
            "schedule": schedule,
            "timeZone": source.get("timeZone", "UTC"),
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }


def judged(source: dict[str, Any]) -> list[tuple[list[str], Verdict]]:
    """What is expected, beside what was found."""
    if "schedules" in source:
        documents = [manifest(schedule, source) for schedule in source["schedules"]]
        expected = list(source["schedules"].values())
    else:
        documents = list(yaml.safe_load_all(source["text"]))
        expected = source["verdicts"]
    return list(zip(expected, read_manifests(documents, Where()), strict=True))


def whole(source: dict[str, Any]) -> str:
    return str(source["name"])


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_every_document_has_its_verdict(source: dict[str, Any]) -> None:
    for (kind, words), verdict in judged(source):
        assert verdict.kind == kind, verdict
        if verdict.job is None:
            assert words in verdict.reason, verdict
        else:
            schedule = verdict.job["schedule"]
            assert schedule.get("expr", schedule.get("every")) == words


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_details_are_kept_or_named(source: dict[str, Any]) -> None:
    verdict = judged(source)[0][1]
    told = " ".join(verdict.warnings)
    for words in source.get("warned", []):
        assert words in told, words
    assert verdict.paused == source.get("paused", False)
    for name, value in source.get("job", {}).items():
        assert verdict.job is not None
        assert verdict.job[name] == value, name
    for name, value in source.get("schedule", {}).items():
        assert verdict.job is not None
        assert verdict.job["schedule"][name] == value, name


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_for_a_year_every_job_fires_as_kubernetes_would_start_it(source: dict[str, Any]) -> None:
    compared = 0
    for _, verdict in judged(source):
        comparison = compare(verdict, AFTER, UNTIL)
        if comparison is not None:
            assert comparison.agrees, comparison
            compared += 1
    imported = [verdict for _, verdict in judged(source) if verdict.job is not None]
    assert compared == sum(one.model is not None for one in imported)


def test_two_of_one_name_are_kept_apart_by_their_namespaces() -> None:
    first, second = manifest("0 1 * * *", {}), manifest("0 2 * * *", {})
    second["metadata"]["namespace"] = "other"
    one, other = (verdict.job for verdict in read_manifests([first, second], Where()))
    assert one is not None
    assert other is not None
    assert (one["name"], other["name"], other["group"]) == ("job", "job", "other")
