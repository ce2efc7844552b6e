"""Sentences, bars and pictures, kept word for word."""

from typing import Any

from betimes.cli.edit import difference
from betimes.cli.looks import Eye
from betimes.cli.perform import merged, quoted
from betimes.cli.present import PRESENTERS, as_json, bar, spark
from betimes.cli.progress import line
from betimes.cli.times import zone_of
from betimes.cli.top import screen
from cli_kit import NOW, golden

EYE = Eye(now=NOW, zone=zone_of(None))
EXPLANATION = {
    "subject": {"job": "job_1"},
    "verdict": "will_not_run",
    "eligible": False,
    "summary": "It will not run. The job is paused.",
    "reasons": [
        {
            "code": "JOB_PAUSED",
            "summary": "The job is paused: upgrade.",
            "blocking": True,
            "since": "2026-11-16T08:00:00.000000Z",
            "evidence": {},
            "fix": {"text": "Resume it.", "action": "POST /v1/jobs/job_1/resume"},
        },
        {"code": "JITTER_DELAY", "summary": "It waits a little.\x1b[2J", "blocking": False,
         "since": None, "evidence": {}, "fix": None},
    ],
    "ahead": 3,
    "expected_at": "2026-11-16T10:00:00.000000Z",
    "checked": [],
    "history": [
        {"at": "2026-11-15T02:00:00.000000Z", "until": None, "fires": 1, "code": "DST_GAP_SKIPPED",
         "summary": "The clock jumped.", "evidence": {}, "decided_at": "2026-11-15T02:00:00Z"},
    ],
}  # fmt: skip
PREVIEW = {
    "description": "Every day at 02:00 (Europe/Stockholm)",
    "occurrences": [
        {"utc": "2026-03-28T01:00:00Z", "local": "2026-03-28T02:00:00", "offset": "+01:00",
         "flags": []},
        {"utc": "2026-03-29T01:00:00Z", "local": "2026-03-29T03:00:00", "offset": "+02:00",
         "flags": ["dst_gap_shifted", "new_flag"]},
    ],
    "warnings": [{"code": "dst_gap", "at": None, "detail": "moved once a year"}],
}  # fmt: skip
FORECAST = {
    "exact": False,
    "fires": 1234,
    "buckets": [
        {"at": "2026-11-16T10:00:00Z", "group": "all", "fires": 1000, "utilisation": 0.82},
        {"at": "2026-11-16T11:00:00Z", "group": "all", "fires": 234, "utilisation": None},
    ],
    "hot_spots": [{"at": "2026-11-16T10:00:00Z", "fires": 1000, "top_jobs": []}],
    "advice": [{"suggestion": "add jitter PT10M to job report"}],
}
GLANCE: dict[str, Any] = {
    "now": "2026-11-16T09:00:00Z",
    "queues": [
        {"name": "default", "state": "ok", "waiting": 12, "running": 3, "scheduled": 40,
         "oldest_age_seconds": 75.0, "recent": spark([0, 1, 2, 8])},
        {"name": "mail", "state": "paused", "waiting": 0, "running": 0, "scheduled": 0,
         "oldest_age_seconds": None, "recent": ""},
    ],
    "workers": [
        {"name": "w-1", "state": "online", "busy": 3, "slots": 10, "queues": ["default", "mail"],
         "heartbeat_at": "2026-11-16T08:59:58Z"},
    ],
    "running": [],
    "upcoming": [
        {"due_at": "2026-11-16T09:00:30Z", "kind": "run", "job_id": "job_1",
         "job_group": "default", "job_name": "nightly", "handler": "report", "queue": "default",
         "will_run": False, "reason_code": "QUEUE_PAUSED"},
    ],
}  # fmt: skip


def test_an_explanation() -> None:
    golden("explanation.txt", PRESENTERS["jobs.explain"](EXPLANATION, EYE))


def test_fires_with_what_is_odd_about_them() -> None:
    golden("preview.txt", PRESENTERS["schedules.preview"](PREVIEW, EYE))
    never = PRESENTERS["jobs.next"]({**PREVIEW, "occurrences": [], "warnings": []}, EYE)
    assert never.endswith("  never again\n")


def test_the_load_ahead() -> None:
    golden("forecast.txt", PRESENTERS["forecast.read"](FORECAST, EYE))
    empty = {**FORECAST, "exact": True, "fires": 0, "buckets": [], "hot_spots": [], "advice": []}
    assert PRESENTERS["forecast.read"](empty, EYE) == "Nothing is ahead.\n0 fires\n"


def test_a_glance_at_the_service() -> None:
    golden("top.txt", screen(GLANCE, EYE, "http://127.0.0.1:8090"))


def test_bars_and_sparks() -> None:
    assert (bar(0), bar(0.5), bar(2)) == ("▏", "█" * 15, "█" * 30)
    assert spark([]) == ""
    assert spark([0, 4, 8]) == " ▄█"
    assert line("import", 50, 200) == f"import  {'█' * 8}{'░' * 22}  50/200  25%"
    assert line("export", 1200, None) == "export  1,200"


def test_values_of_others_are_shown_as_they_are() -> None:
    assert as_json({"a": "ü"}, EYE) == '{\n  "a": "ü"\n}\n'
    assert as_json("text", EYE) == "text"


def test_flags_go_over_files_and_edits_become_patches() -> None:
    under = {"retry": {"max_attempts": 3, "jitter": "none"}, "queue": "a"}
    assert merged(under, {"retry": {"max_attempts": 5}}) == {
        "retry": {"max_attempts": 5, "jitter": "none"},
        "queue": "a",
    }
    assert difference(under, {"queue": "a"}) == {"retry": None}
    assert difference(under, {**under, "retry": {"jitter": "full"}}) == {
        "retry": {"max_attempts": None, "jitter": "full"}
    }
    assert difference(under, dict(under)) == {}
    assert (quoted("7"), quoted('"7"')) == ('"7"', '"7"')
