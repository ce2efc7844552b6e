"""Arguments of somebody else's call as a payload."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from betimes.domain.errors import BadSchedule

UNNAMED = "it has arguments without names: the payload is {args, kwargs}"


def payload_of(
    arguments: Iterable[Any] | None, keywords: Mapping[str, Any] | None, notes: list[str]
) -> dict[str, Any]:
    """Names with their values; with {args, kwargs} where some have none.

    Raises:
        BadSchedule: they are no JSON.

    """
    values, named = list(arguments or ()), dict(keywords or {})
    try:
        json.dumps([values, named], allow_nan=False)
    except (TypeError, ValueError) as fault:
        raise BadSchedule(f"its arguments cannot be written as JSON: {fault}") from None
    if not values:
        return named
    notes.append(UNNAMED)
    return {"args": values, "kwargs": named}
