"""Logs: one handler of events, as JSON lines for machines or as text for people."""

import logging
import math
import traceback
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import msgspec
import structlog

from betimes.domain.clock import Clock
from betimes.telemetry.core import Telemetry
from betimes.telemetry.events import LEVELS, Event, Level
from betimes.telemetry.redact import Plain, safe_mapping, safe_text

LEVEL_NUMBERS: Mapping[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
FRAMES_MAX = 30
DIM, RESET = "\x1b[2m", "\x1b[0m"
COLOURS = {"debug": DIM, "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}


class LogHandler:
    """Writes each event of at least `level` as one line."""

    def __init__(
        self, *, stream: TextIO, clock: Clock, level: str, style: str, colour: bool
    ) -> None:
        render = json_line if style == "json" else ConsoleLine(colour=colour)
        self._clock = clock
        self._least = LEVELS.index(_level(level))
        # Wrapped rather than configured: structlog's own defaults are global, this is not.
        self._logger = structlog.wrap_logger(
            structlog.WriteLogger(stream),
            processors=[_make_safe, render],
            wrapper_class=structlog.BoundLogger,
        )

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if LEVELS.index(event.level) < self._least:
            return
        self._logger.msg(
            event.name,
            at=self._clock.now().isoformat(timespec="milliseconds"),
            level=event.level,
            error=event.error,
            about={**event.metadata, **event.measurements},
        )


class StandardBridge(logging.Handler):
    """What libraries say through `logging` becomes events of ours."""

    def __init__(self, *, telemetry: Telemetry, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._telemetry = telemetry

    def emit(self, record: logging.LogRecord) -> None:
        """Translate one record."""
        self._telemetry.event(
            "library.log",
            level=_nearest(record.levelno),
            error=record.exc_info[1] if record.exc_info else None,
            logger=record.name,
            message=record.getMessage(),
        )


def choose_style(wanted: str, stream: TextIO) -> str:
    """`auto` is text on a terminal and JSON elsewhere."""
    if wanted != "auto":
        return wanted
    return "console" if stream.isatty() else "json"


def json_line(_logger: object, _method: str, line: MutableMapping[str, Any]) -> str:
    """One JSON object; what the event says about itself stands beside the fixed names."""
    fixed = {"at": line["at"], "level": line["level"], "event": line["event"]}
    about = {f"{name}_" if name in fixed else name: value for name, value in line["about"].items()}
    return msgspec.json.encode({**fixed, **about, **line["error"]}).decode("utf-8")


class ConsoleLine:
    """One line of text, and the traceback below it, each of its lines marked as such."""

    def __init__(self, *, colour: bool) -> None:
        self._colours = COLOURS if colour else dict.fromkeys(COLOURS, "")
        self._reset = RESET if colour else ""

    def __call__(self, _logger: object, _method: str, line: MutableMapping[str, Any]) -> str:
        """Render for a person."""
        pairs = " ".join(f"{name}={_brief(value)}" for name, value in line["about"].items())
        error = line["error"]
        if error:
            pairs = f"{pairs} {error['error']}: {error['error_message']}".lstrip()
        frames = "".join(f"\n  | {frame}" for frame in error.get("traceback", ()))
        colour = self._colours[line["level"]]
        head = f"{line['at'][11:23]} {colour}{line['level']:7}{self._reset} {line['event']:16}"
        return f"{head} {pairs}{frames}"


def _make_safe(_logger: object, _method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
    error: BaseException | None = line["error"]
    return {
        "at": line["at"],
        "level": line["level"],
        "event": safe_text(line["event"]),
        "about": safe_mapping(line["about"]),
        "error": {} if error is None else _tell(error),
    }


def _tell(error: BaseException) -> dict[str, Plain]:
    frames = "".join(traceback.format_exception(error, limit=-FRAMES_MAX)).splitlines()
    return {
        "error": type(error).__name__,
        "error_message": safe_text(str(error)),
        "traceback": [safe_text(frame) for frame in frames],
    }


def _brief(value: Plain) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8")
    return f'"{text}"' if isinstance(value, str) and (" " in value or not value) else text


def _level(name: str) -> Level:
    (level,) = (level for level in LEVELS if level == name)
    return level


def _nearest(number: int) -> Level:
    return max(
        (level for level in LEVELS if LEVEL_NUMBERS[level] <= number),
        key=lambda level: LEVEL_NUMBERS[level],
        default="debug",
    )
