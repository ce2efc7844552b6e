"""EventBridge: each schedule imported faithfully, or refused with a reason."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from betimes.cli.documents import documents_in
from betimes.importers import Verdict, compare
from betimes.importers.amazon import Where, read_eventbridge

CORPUS = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "importers" / "eventbridge.yaml").read_text("utf-8")
)
AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)
WHERE = Where(now=AFTER)


def schedule(expression: str, source: dict[str, Any]) -> dict[str, Any]:
    return {
        "Name": "job",
        "ScheduleExpression": expression,
        "ScheduleExpressionTimezone": source.get("zone", "UTC"),
        "CreationDate": "2025-12-31T23:59:30Z",
        "Target": {"Arn": "https://a.example/", "Input": "{}"},
    }


def judged(source: dict[str, Any], folder: Path) -> list[tuple[list[str], Verdict]]:
    """What is expected, beside what was found."""
    if "expressions" in source:
        documents = [schedule(one, source) for one in source["expressions"]]
        expected = list(source["expressions"].values())
    else:
        (folder / "one.yaml").write_text(source["text"], encoding="utf-8")
        ((_, found),) = documents_in([str(folder / "one.yaml")], tags=True)
        assert isinstance(found, list), found
        documents, expected = found, source["verdicts"]
    return list(zip(expected, read_eventbridge(documents, WHERE), strict=True))


def whole(source: dict[str, Any]) -> str:
    return str(source["name"])


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_every_schedule_has_its_verdict(source: dict[str, Any], tmp_path: Path) -> None:
    for (kind, words), verdict in judged(source, tmp_path):
        assert verdict.kind == kind, verdict
        if verdict.job is None:
            assert words in verdict.reason, verdict
        else:
            said = verdict.job["schedule"]
            assert said.get("expr", said.get("every", said.get("at"))) == words


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_details_are_kept_or_named(source: dict[str, Any], tmp_path: Path) -> None:
    verdict = judged(source, tmp_path)[0][1]
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
def test_for_a_year_every_job_fires_as_eventbridge_would_invoke_it(
    source: dict[str, Any], tmp_path: Path
) -> None:
    for _, verdict in judged(source, tmp_path):
        comparison = compare(verdict, AFTER, UNTIL)
        if comparison is not None:
            assert comparison.agrees, comparison
            assert comparison.ours > 0
