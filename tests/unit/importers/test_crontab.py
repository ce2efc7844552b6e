"""Crontabs of every kind: each line imported faithfully, or refused with a reason."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from betimes.importers import compare
from betimes.importers.crontab import Where, read_crontab, split_percent
from betimes.importers.verdict import Verdict, digest, slug

CORPUS = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "importers" / "crontabs.yaml").read_text("utf-8")
)
AFTER, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC)


def read(source: dict[str, Any]) -> dict[int, Verdict]:
    where = Where(
        timezone=source.get("tz"),
        system=source.get("system", False),
        flavour=source.get("flavour"),
        prefix="cron",
    )
    return {
        int(one.place.removeprefix("line ")): one for one in read_crontab(source["text"], where)
    }


def whole(source: dict[str, Any]) -> str:
    return str(source["name"])


def test_there_are_thirty_of_them() -> None:
    assert len(CORPUS) >= 30


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_every_line_has_its_verdict(source: dict[str, Any]) -> None:
    found = read(source)
    expected = {line: rest for line, *rest in source["verdicts"]}
    assert list(found) == list(expected), "a verdict for every line that says something"
    for line, (kind, *words) in expected.items():
        verdict = found[line]
        assert verdict.kind == kind, (line, verdict)
        if kind == "imported":
            assert verdict.job is not None
            assert verdict.job["schedule"]["expr"] == words[0], line
            assert verdict.reason == ""
        elif kind == "refused":
            assert words[0] in verdict.reason, (line, verdict.reason)


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_details_are_kept(source: dict[str, Any]) -> None:
    found = read(source)
    for line, payload in source.get("payloads", {}).items():
        job = found[line].job
        assert job is not None
        assert job["payload"] | payload == job["payload"], line
        assert ("stdin" in payload) == ("stdin" in job["payload"])
    for line, words in source.get("warned", {}).items():
        assert any(words in warning for warning in found[line].warnings), found[line]
    for line, zone in source.get("zones", {}).items():
        job = found[line].job
        assert job is not None
        assert job["schedule"]["timezone"] == zone
    for line, match in source.get("matches", {}).items():
        job = found[line].job
        assert job is not None
        assert job["schedule"]["day_match"] == match, line


@pytest.mark.parametrize("source", CORPUS, ids=whole)
def test_for_a_year_every_line_fires_as_cron_would_start_it(source: dict[str, Any]) -> None:
    for line, verdict in read(source).items():
        comparison = compare(verdict, AFTER, UNTIL)
        if verdict.job is None:
            assert comparison is None
            continue
        assert comparison is not None
        assert (comparison.missing, comparison.extra) == ((), ()), line
        assert bool(comparison.doubled) == (line in source.get("doubled", [])), line


def test_names_are_those_of_the_lines_and_never_the_same_twice() -> None:
    twice = next(one for one in CORPUS if whole(one) == "the same line twice")
    first, second = (verdict.job for verdict in read(twice).values())
    assert first is not None
    assert second is not None
    assert second["name"] == f"{first['name']}-2"
    moved = {**twice, "text": f"# a comment\n\n{twice['text']}"}
    again = [verdict.job["name"] for verdict in read(moved).values() if verdict.job]
    assert again == [first["name"], second["name"]], "a line keeps its name wherever it stands"
    assert digest("a", "b") != digest("ab"), "parts are kept apart"
    assert slug("  /Usr/Bin/Ärger!! ") == "usr-bin-rger"
    assert slug("***") == "job"


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("plain", "plain", None),
        (r"date +\%F", "date +%F", None),
        ("cat %a%b", "cat", "a\nb\n"),
        ("cat%a%", "cat", "a\n"),
        ("cat%%", "cat", "\n"),
        (r"echo a\\%b", "echo a\\", "b\n"),
        (r"echo \a \\b", r"echo \a \b", None),
        ("cat%x\\%y\\\\z", "cat", "x%y\\\\z\n"),
        ("odd\\", "odd\\", None),
    ],
)
def test_percent_signs_as_debian_was_seen_to_read_them(
    text: str, command: str, stdin: str | None
) -> None:
    assert split_percent(text) == (command, stdin)


def test_no_line_is_lost_whatever_it_holds() -> None:
    text = "".join(f"{chr(number)} * * * * x\n" for number in range(33, 127))
    verdicts = read_crontab(text, Where(timezone="UTC"))
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    assert len(verdicts) == len(lines)
    assert all(verdict.job or verdict.reason for verdict in verdicts)
