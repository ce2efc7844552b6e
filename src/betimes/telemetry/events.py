"""What a handler is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, or a span that ended."""

    name: str
    level: Level = "info"
    measurements: Mapping[str, float] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)
    error: BaseException | None = None


Handler = Callable[[Event], None]
