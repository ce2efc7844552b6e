"""Sentences about values that do not fit say what was expected and what was got."""

from typing import Any

import pytest

from betimes.api.problem import Trouble
from betimes.api.reading import convert, read_query
from betimes.wire.forecast import ForecastQuery, WhatIf
from betimes.wire.jobs import ListJobs, NewJob, ResumeJob
from betimes.wire.jobs_bulk import BulkJobs
from betimes.wire.queues import QueueSettings
from betimes.wire.runs import ListRuns, NewRun

JOB = {"schedule": "every 1h", "handler": "h"}
CONCURRENCY = {"key": "k", "on_limit": "drop"}


@pytest.mark.parametrize(
    ("kind", "value", "pointer", "sentence"),
    [
        (ResumeJob, {"missed": "all"}, "/missed", "run_all, run_latest or skip, got 'all'"),
        (NewRun, {"concurrency": CONCURRENCY}, "/concurrency/on_limit", "skip or wait, got 'drop'"),
        (NewJob, {"retry": {"jitter": "much"}}, "/retry/jitter", "equal, full or none, got 'much'"),
        (NewJob, {"retry": {"jitter": 5}}, "/retry/jitter", "equal, full or none, got a whole n"),
        (
            NewJob,
            {"dedupe": {"key": "k", "form": "odd"}},
            "/dedupe/form",
            "debounce, throttle or unique, got 'odd'",
        ),
        (
            BulkJobs,
            {"action": "stop", "filter": {}},
            "/action",
            "cancel, delete, pause, resume or set, got 'stop'",
        ),
        (
            NewJob,
            {"notify": [{"on": ["never"]}]},
            "/notify/0/on/0",
            "run.skipped, run.succeeded or success, got 'never'",
        ),
        (NewJob, {"target": {"type": "ftp"}}, "/target/type", "task, http or workflow, got 'ftp'"),
        (NewJob, {"priority": 10}, "/priority", "a whole number of at most 9, got 10"),
        (NewJob, {"priority": -1}, "/priority", "a whole number of at least 0, got -1"),
        (NewJob, {"priority": "5"}, "/priority", "a whole number, got text"),
        (NewJob, {"name": ""}, "/name", "text of at least 1 characters, got 0"),
        (NewJob, {"name": "n" * 201}, "/name", "text of at most 200 characters, got 201"),
        (
            NewJob,
            {"queue": "a:b"},
            "/queue",
            "1 to 128 printable characters without a colon, got 'a:b'",
        ),
        (NewJob, {"tags": {"a": 1}}, "/tags/...", "text, got a whole number"),
        (NewJob, {"payload_ref": None, "timeout": []}, "/timeout", "null, got a list"),
        (WhatIf, {"slots": 0}, "/slots", "a whole number of at least 1, got 0"),
        (WhatIf, {"add": [{}]}, "/add/0", "the member `schedule`, which is missing"),
        (QueueSettings, {"weight": 0}, "/weight", "a number of at least 0.001, got 0"),
        (QueueSettings, [], "", "an object, got a list"),
    ],
)
def test_bodies(kind: Any, value: Any, pointer: str, sentence: str) -> None:
    with pytest.raises(Trouble) as caught:
        convert(value, kind)
    (error,) = caught.value.errors
    assert error.pointer == pointer
    assert error.detail.startswith("expected ")
    assert sentence in error.detail, error.detail
    assert (caught.value.code, error.code) == ("invalid_parameter", "invalid_parameter")


def test_an_unknown_member_is_refused_with_those_there_are() -> None:
    with pytest.raises(Trouble) as caught:
        convert({"missing": 1}, ResumeJob)
    assert caught.value.code == "unknown_field"
    assert (
        caught.value.detail
        == "/missing: expected members out of missed, got the unknown field `missing`"
    )


@pytest.mark.parametrize(
    ("kind", "query", "sentence"),
    [
        (
            ForecastQuery,
            b"group_by=colour",
            "parameter group_by: expected all, handler, queue or tenant, got",
        ),
        (
            ListRuns,
            b"state=dead,gone",
            "parameter state: expected cancelled, dead, expired, failed, missed, queued",
        ),
        (ListRuns, b"state=gone", "got 'gone'"),
        (ListJobs, b"limit=0", "parameter limit: expected a whole number of at least 1, got 0"),
        (ListJobs, b"limit=many", "parameter limit: expected a whole number, got text"),
    ],
)
def test_queries(kind: Any, query: bytes, sentence: str) -> None:
    with pytest.raises(Trouble) as caught:
        read_query(query, kind)
    assert sentence in caught.value.detail
