"""What a client must know about an operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the API; the table of all of them is generated from the routes."""

    name: str
    method: str
    path: str
    answers: Mapping[int, Any]
    keyed: bool = False
    media: str = "application/json"
    accepts: str = "application/json"
