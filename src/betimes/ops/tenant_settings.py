"""Settings of tenants: which there are, and what each may be. Pure."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from betimes.domain.errors import Invalid, Refused
from betimes.ops.idempotency import KEEP_FOR, KEEP_FOR_MAX
from betimes.schedule.duration import read_duration
from betimes.wire.base import shown_duration

STRICT = "strict"
REQUIRE_IF_MATCH = "require_if_match"
IDEMPOTENCY_RETENTION = "idempotency_retention"
RUN_EVENTS = "run_events"
TARGETS = "targets"
ALL = "all"
TEXTS_MAX = 1_000
Complaint = str | None
"""What was expected instead; None where all is well."""


def check_settings(settings: Mapping[str, Any], *, keys_kept: timedelta) -> None:
    """Refuse settings that could not be obeyed; `keys_kept` is how long the cell keeps keys.

    Raises:
        Invalid: a name is not known, or its value is not what it may be.

    """
    for name, value in settings.items():
        _check(KINDS, name, value, "settings")
    if (said := settings.get(IDEMPOTENCY_RETENTION)) is not None:
        _check_retention(said, min(keys_kept, KEEP_FOR_MAX))
    for name, value in settings.get(TARGETS, {}).items():
        _check(TARGET_KINDS, name, value, f"settings/{TARGETS}")


def idempotency_retention(settings: Mapping[str, Any]) -> timedelta:
    """How long the answers of a tenant are kept with their keys; a day unless it is said."""
    said = settings.get(IDEMPOTENCY_RETENTION)
    kept = None if said is None else _span(said)
    return KEEP_FOR if kept is None else max(KEEP_FOR, min(kept, KEEP_FOR_MAX))


def _check(
    kinds: Mapping[str, Callable[[Any], Complaint]], name: str, value: Any, place: str
) -> None:
    if name not in kinds:
        raise Invalid(
            f"expected {place.replace('/', '.')} out of {', '.join(sorted(kinds))}; "
            f"got {name[:50]!r}",
            pointer=f"/{place}",
        )
    if (expected := kinds[name](value)) is not None:
        raise Invalid(
            f"expected {expected} for {name}, got {str(value)[:100]!r}", pointer=f"/{place}/{name}"
        )


def _check_retention(said: Any, most: timedelta) -> None:
    kept = _span(said)
    if kept is None or not KEEP_FOR <= kept <= most:
        raise Invalid(
            f"expected a duration within {shown_duration(KEEP_FOR)} and {shown_duration(most)} "
            f"(janitor.retain_idempotency_days allows no more), got {str(said)[:100]!r}",
            pointer=f"/settings/{IDEMPOTENCY_RETENTION}",
        )


def _span(said: object) -> timedelta | None:
    try:
        return timedelta(microseconds=read_duration(said, "").elapsed())
    except (Refused, OverflowError, ValueError):
        return None


def _boolean(value: Any) -> Complaint:
    return None if isinstance(value, bool) else "true or false"


def _duration(value: Any) -> Complaint:
    return None if _span(value) is not None else "a duration such as P7D"


def _events(value: Any) -> Complaint:
    return None if value == ALL else f"{ALL!r}, or null for few"


def _object(value: Any) -> Complaint:
    return None if isinstance(value, dict) else "an object"


def _texts(value: Any) -> Complaint:
    good = isinstance(value, list) and len(value) <= TEXTS_MAX
    if good and all(isinstance(one, str) and one for one in value):
        return None
    return f"a list of at most {TEXTS_MAX} texts"


def _networks(value: Any) -> Complaint:
    if (wrong := _texts(value)) is not None:
        return wrong
    return None if all(map(_is_network, value)) else "a list of networks such as 10.1.0.0/16"


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


KINDS: Mapping[str, Callable[[Any], Complaint]] = {
    STRICT: _boolean,
    REQUIRE_IF_MATCH: _boolean,
    IDEMPOTENCY_RETENTION: _duration,
    RUN_EVENTS: _events,
    TARGETS: _object,
}
TARGET_KINDS: Mapping[str, Callable[[Any], Complaint]] = {
    "allow": _networks,
    "names": _texts,
    "plain_http": _boolean,
    "redact_headers": _texts,
    "redact_paths": _texts,
}
