"""Server-sent events, read line by line."""

from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `id` is where a later stream may go on."""

    id: str | None
    type: str
    data: Any


class EventReader:
    """Puts lines together into events."""

    def __init__(self, last_id: str | None = None) -> None:
        self._id = last_id
        self._type = ""
        self._data: list[str] = []

    def feed(self, line: bytes) -> Event | None:
        """Take a line; an event when it was the last one of it."""
        text = line.decode().rstrip("\r\n")
        if not text:
            return self._end()
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id":
            self._id = value
        return None

    def _end(self) -> Event | None:
        data, kind = "\n".join(self._data), self._type
        self._data, self._type = [], ""
        if not data:
            return None
        try:
            told = msgspec.json.decode(data)
        except msgspec.DecodeError:
            told = data
        return Event(self._id, kind or "message", told)
