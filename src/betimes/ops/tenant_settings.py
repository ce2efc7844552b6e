"""Settings of tenants that the API itself obeys. Pure."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from betimes.domain.errors import Invalid, Refused
from betimes.ops.idempotency import KEEP_FOR, KEEP_FOR_MAX
from betimes.schedule.duration import read_duration
from betimes.wire.base import shown_duration

STRICT = "strict"
REQUIRE_IF_MATCH = "require_if_match"
IDEMPOTENCY_RETENTION = "idempotency_retention"


def check_settings(settings: Mapping[str, Any], *, keys_kept: timedelta) -> None:
    """Refuse settings that could not be obeyed; `keys_kept` is how long the cell keeps keys."""
    for name in (STRICT, REQUIRE_IF_MATCH):
        if not isinstance(settings.get(name, False), bool):
            raise Invalid(
                f"expected true or false, got {settings[name]!r}", pointer=f"/settings/{name}"
            )
    if IDEMPOTENCY_RETENTION not in settings:
        return
    most = min(keys_kept, KEEP_FOR_MAX)
    kept = _span(settings[IDEMPOTENCY_RETENTION])
    if kept is None or not KEEP_FOR <= kept <= most:
        raise Invalid(
            f"expected a duration within {shown_duration(KEEP_FOR)} and {shown_duration(most)} "
            f"(janitor.retain_idempotency_days allows no more), "
            f"got {settings[IDEMPOTENCY_RETENTION]!r}",
            pointer=f"/settings/{IDEMPOTENCY_RETENTION}",
        )


def idempotency_retention(settings: Mapping[str, Any]) -> timedelta:
    """How long the answers of a tenant are kept with their keys; a day unless it is said."""
    said = settings.get(IDEMPOTENCY_RETENTION)
    kept = None if said is None else _span(said)
    return KEEP_FOR if kept is None else max(KEEP_FOR, min(kept, KEEP_FOR_MAX))


def _span(said: object) -> timedelta | None:
    try:
        return timedelta(microseconds=read_duration(said, "").elapsed())
    except (Refused, OverflowError, ValueError):
        return None
