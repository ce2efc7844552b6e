"""What handlers say, kept until the courier takes it to the service."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

import msgspec

from betimes.wire.base import shown_instant
from betimes.wire.workers import LogLine, Progress

LINES_MAX = 10_000
MESSAGE_MAX = 10_000
Level = Literal["debug", "info", "warning", "error"]


@dataclass(slots=True)
class Said:
    """What was said since the last time."""

    progress: Progress | None = None
    checkpoint: bytes | None = None
    lines: list[LogLine] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lines) or self.progress is not None or self.checkpoint is not None


class Saying:
    """The voice of one attempt; any thread may speak."""

    def __init__(
        self, lease: Any, *, now: Callable[[], datetime], wake: Callable[["Saying"], None]
    ) -> None:
        self.lease = lease
        self.end_wanted = False
        self.telling = asyncio.Lock()
        """Held by whoever tells the service, so that it hears everything in order."""
        self._now = now
        self._wake = wake
        self._lock = threading.Lock()
        self._said = Said()
        self._dropped = 0

    def progress(self, percent: float, message: str | None) -> None:
        """How far it has come; only the last word counts."""
        with self._lock:
            self._said.progress = Progress(percent=percent, message=message)
        self._wake(self)

    def checkpoint(self, data: bytes) -> None:
        """Where the next attempt may begin; only the last word counts."""
        with self._lock:
            self._said.checkpoint = data
        self._wake(self)

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """One line; of far too many the oldest are dropped, and that is told."""
        line = LogLine(
            message=message[:MESSAGE_MAX],
            at=shown_instant(self._now()),
            level=cast("Level", level),
            fields=_plain(fields),
        )
        with self._lock:
            self._said.lines.append(line)
            self._shorten()
        self._wake(self)

    def hear(self, message: tuple[str, tuple[Any, ...]]) -> None:
        """Something said by a handler in a process of its own."""
        name, told = message
        getattr(self, name)(*told)

    def wants_end(self) -> bool:
        """Whether the attempt should end soon."""
        return self.end_wanted

    def take(self) -> Said:
        """Everything said and not yet taken."""
        with self._lock:
            said, self._said = self._said, Said()
            if said.lines and self._dropped:
                told = f"{self._dropped} lines before this were dropped: too many at once"
                at = said.lines[0].at
                said.lines.insert(0, LogLine(message=told, at=at, level="warning"))
                self._dropped = 0
        return said

    def give_back(self, said: Said) -> None:
        """What could not be carried; what was said meanwhile is newer."""
        with self._lock:
            now = self._said
            now.progress = now.progress or said.progress
            now.checkpoint = now.checkpoint or said.checkpoint
            now.lines = said.lines + now.lines
            self._shorten()

    def _shorten(self) -> None:
        excess = len(self._said.lines) - LINES_MAX
        if excess > 0:
            del self._said.lines[:excess]
            self._dropped += excess


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as JSON can hold them: whatever it cannot is shown as text."""
    if not fields:
        return {}
    try:
        plain = msgspec.to_builtins(dict(fields), str_keys=True, enc_hook=str)
        msgspec.json.encode(plain)
    except (TypeError, ValueError):
        plain = {str(name): str(value) for name, value in fields.items()}
    return cast("dict[str, Any]", plain)
