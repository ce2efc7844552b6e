"""Log lines are one line each, hold no secret, and cannot be forged by a value."""

import io
import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.telemetry import Event, Recorder, Telemetry
from betimes.telemetry.log import LogHandler, StandardBridge, choose_style
from betimes.telemetry.redact import DEPTH_MAX, LENGTH_MAX, safe_mapping, safe_text
from betimes.testing import ManualClock

KEY = "btm_live_4fzzzzzzzzzz0123456789abcdef"


def written(
    event: Event, *, style: str = "json", level: str = "debug", colour: bool = False
) -> str:
    stream = io.StringIO()
    LogHandler(stream=stream, clock=ManualClock(), level=level, style=style, colour=colour)(event)
    return stream.getvalue()


def line_of(event: Event) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(written(event))
    return answer


def test_a_json_line_holds_all_there_is() -> None:
    event = Event(
        name="role.run", metadata={"role": "worker", "level": 3}, measurements={"seconds": 0.5}
    )
    assert line_of(event) == {
        "at": "2026-01-01T00:00:00.000+00:00",
        "level": "info",
        "event": "role.run",
        "role": "worker",
        "level_": 3,
        "seconds": 0.5,
    }


def test_an_error_brings_its_traceback_along() -> None:
    error = ValueError(f"no {KEY}\nforged line")
    line = line_of(Event(name="role.run", level="error", error=error))
    assert line["error"] == "ValueError"
    assert line["error_message"] == "no btm_[redacted]\\nforged line"
    assert KEY not in str(line["traceback"])


def test_a_console_line_is_readable() -> None:
    event = Event(
        name="node.started",
        metadata={"node": "a b", "roles": ("api", "worker")},
        measurements={"seconds": 0.123456789},
    )
    expected = (
        '00:00:00.000 info    node.started     node="a b" roles=["api","worker"] seconds=0.123457\n'
    )
    assert written(event, style="console") == expected


def test_console_tracebacks_are_marked_line_by_line() -> None:
    event = Event(name="x", level="error", error=ValueError("first\n12:00:00.000 info forged"))
    first, *rest = written(event, style="console").splitlines()
    assert first.endswith("ValueError: first\\n12:00:00.000 info forged")
    assert rest
    assert all(line.startswith("  | ") for line in rest)


def test_colours_only_when_wanted() -> None:
    event = Event(name="x", level="warning")
    assert "\x1b" in written(event, style="console", colour=True)
    assert "\x1b" not in written(event, style="console")


def test_what_is_less_important_than_the_level_is_left_out() -> None:
    assert written(Event(name="x", level="info"), level="warning") == ""
    assert written(Event(name="x", level="error"), level="warning") != ""


@given(st.text(), st.text(), st.sampled_from(["json", "console"]))
def test_no_value_can_break_out_of_its_line(key: str, value: str, style: str) -> None:
    text = written(Event(name="x", metadata={key: value}), style=style)
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert "\x1b" not in text
    assert len(text.splitlines()) == 1
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "hunter2"),
        ("Authorization", "Bearer hunter2"),
        ("api_key", "hunter2"),
        ("webhook_secret", ["hunter2"]),
        ("headers", {"Cookie": "hunter2"}),
        ("note", "called with btm_hunter2"),
        ("note", "whsec_hunter2"),
        ("note", "Bearer hunter2"),
        ("dsn", "postgresql://me:hunter2@host/name"),
        ("dsn", "postgresql://me:hun:t@erhunter2@host/name"),
        ("dsn", "postgresql://host/name?password=hunter2&a=b"),
        ("note", "x" * (LENGTH_MAX - 20) + "postgresql://me:hunter2" + "y" * 100 + "@host"),
    ],
)
def test_secrets_do_not_leave(name: str, value: object) -> None:
    shown = str(safe_mapping({name: value}))
    assert "hunter2" not in shown
    assert "hunt" not in shown
    assert "redacted" in shown or len(shown) > LENGTH_MAX


def test_plain_values_stay_what_they_are() -> None:
    values = {"a": 1, "b": 1.5, "c": None, "d": True, "token": None, "e": timedelta(minutes=1)}
    assert safe_mapping(values) == {**values, "e": 60.0}


def test_depth_and_length_are_bounded() -> None:
    nested: object = "deep"
    for _ in range(100):
        nested = [nested]
    assert str(safe_mapping({"a": nested})).count("[") >= DEPTH_MAX
    assert len(safe_text("x" * 1_000_000)) < LENGTH_MAX + 50
    numbers = safe_mapping({"a": list(range(1000))})["a"]
    assert isinstance(numbers, list)
    assert len(numbers) == 100


def test_what_libraries_log_becomes_an_event() -> None:
    recorder = Recorder()
    bridge = StandardBridge(telemetry=Telemetry(clock=ManualClock(), handlers=[recorder]))
    logger = logging.getLogger("betimes.tests.library")
    logger.addHandler(bridge)
    try:
        logger.info("not important")
        logger.critical("task %s died", 7)
    finally:
        logger.removeHandler(bridge)
    (event,) = recorder.events
    assert (event.level, event.metadata["message"]) == ("error", "task 7 died")


def test_the_style_follows_the_terminal() -> None:
    assert choose_style("auto", io.StringIO()) == "json"
    assert choose_style("console", io.StringIO()) == "console"
