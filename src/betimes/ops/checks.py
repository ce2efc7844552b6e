"""What may be written at all: pure checks that answer with a sentence before anything is stored."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from unicodedata import is_normalized

import msgspec

from betimes.domain.errors import Invalid, TooLarge
from betimes.domain.parcel import PRIORITY_HIGHEST, PRIORITY_LOWEST
from betimes.domain.run import NewRun
from betimes.wire.base import shown_duration

QUEUE_LENGTH_MAX = 128
NAME_LENGTH_MAX = 200
HANDLER_LENGTH_MAX = 255
REASON_LENGTH_MAX = 1_000
PAYLOAD_BYTES_MAX = 256 * 1024
OPTIONS_BYTES_MAX = 16 * 1024
BATCH_RUNS_MAX = 10_000
KEY_LENGTH_MAX = 255
IN_FLIGHT_MAX = 1_000_000
RATE_MAX = 100_000.0
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
DELAY_MAX = timedelta(days=366 * 100)
RESERVED_PREFIXES = ("job_", "run_")
RESERVED_NAMES = ("apply", "batch", "bulk")
"""What stands behind `/v1/jobs/` without being a job."""


def check_text(text: str, *, what: str, most: int, pointer: str) -> None:
    """One line of printable text."""
    if not 1 <= len(text) <= most:
        raise Invalid(f"expected {what} of 1-{most} characters, got {len(text)}", pointer=pointer)
    if not text.isprintable():
        raise Invalid(f"expected {what} of printable characters, got {text!r}", pointer=pointer)


def check_name(name: str, *, pointer: str = "/name") -> None:
    """A name that a path segment can hold and that no id can be mistaken for."""
    check_text(name, what="a name", most=NAME_LENGTH_MAX, pointer=pointer)
    if "~" in name or "/" in name:
        raise Invalid(f"expected a name without ~ and /, got {name!r}", pointer=pointer)
    if not is_normalized("NFC", name):
        raise Invalid(
            f"expected a name in composed characters (NFC), got {name!r}, which looks the same",
            pointer=pointer,
        )
    if name in RESERVED_NAMES and pointer.endswith("/name"):
        raise Invalid(f"expected a name that no path of the API has, got {name!r}", pointer=pointer)
    if name.startswith(RESERVED_PREFIXES):
        prefixes = " or ".join(RESERVED_PREFIXES)
        raise Invalid(
            f"expected a name that does not start with {prefixes}, got {name!r}", pointer=pointer
        )


def check_queue(queue: str) -> None:
    """Hints separate their parts by colons, so a queue has none."""
    check_text(queue, what="a queue", most=QUEUE_LENGTH_MAX, pointer="/queue")
    if ":" in queue:
        raise Invalid(f"expected a queue without a colon, got {queue!r}", pointer="/queue")


def check_priority(priority: int) -> None:
    """Within the ten steps."""
    if not PRIORITY_LOWEST <= priority <= PRIORITY_HIGHEST:
        raise Invalid(
            f"expected a priority within {PRIORITY_LOWEST}-{PRIORITY_HIGHEST}, got {priority}",
            pointer="/priority",
        )


def check_work(handler: str | None, target: Mapping[str, Any]) -> None:
    """Something to do: a handler, or a target that says what."""
    if handler is None and not target:
        raise Invalid("expected a handler or a target, got neither", pointer="/target")
    if handler is not None:
        check_text(handler, what="a handler", most=HANDLER_LENGTH_MAX, pointer="/handler")
        if handler.startswith(":"):
            raise Invalid(
                f"expected a handler that does not begin with a colon, got {handler!r}",
                pointer="/handler",
            )


def check_payload(payload: bytes | None) -> None:
    """Small enough to lie in the row."""
    if payload is not None and len(payload) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"expected a payload of at most {PAYLOAD_BYTES_MAX} bytes, got {len(payload)}",
            pointer="/payload",
        )


def check_instant(instant: datetime, *, pointer: str) -> None:
    """Aware, and within what ids, Python and PostgreSQL can all hold."""
    if instant.tzinfo is None:
        raise Invalid(f"expected a time with an offset, got {instant.isoformat()}", pointer=pointer)
    if not EARLIEST <= instant < LATEST:
        raise Invalid(
            f"expected a time between {EARLIEST.year} and {LATEST.year}, got {instant.isoformat()}",
            pointer=pointer,
        )


def check_reason(reason: str, *, pointer: str = "/reason") -> None:
    """Short enough to be shown."""
    if len(reason) > REASON_LENGTH_MAX or "\x00" in reason:
        raise Invalid(
            f"expected a reason of at most {REASON_LENGTH_MAX} characters without NUL, "
            f"got {len(reason)}",
            pointer=pointer,
        )


def check_rate(rate_per_second: float | None) -> None:
    """A rate that makes progress."""
    if rate_per_second is not None and not 0 < rate_per_second <= RATE_MAX:
        raise Invalid(
            f"expected a rate above 0 and at most {RATE_MAX:g} per second, got {rate_per_second}",
            pointer="/rate_per_second",
        )


def encode_options(options: Mapping[str, Any], target: Mapping[str, Any]) -> str | None:
    """Options of an ad-hoc run as JSON text, with the target it has no column for."""
    if not options and not target:
        return None
    encoded = msgspec.json.encode({**options, "target": target} if target else options)
    if len(encoded) > OPTIONS_BYTES_MAX:
        raise TooLarge(
            f"expected options of at most {OPTIONS_BYTES_MAX} bytes, got {len(encoded)}",
            pointer="/options",
        )
    return encoded.decode()


def check_terms(options: Mapping[str, Any]) -> None:
    """Keys that an index can hold, and a limit that lets somebody in."""
    concurrency = options.get("concurrency")
    for name, what in (("fairness_key", "a fairness key"), ("rate_limit_key", "a rate limit key")):
        if (key := options.get(name)) is not None:
            check_text(key, what=what, most=KEY_LENGTH_MAX, pointer=f"/{name}")
    if not concurrency:
        return
    pointer = "/concurrency"
    key, limit = concurrency.get("key"), concurrency.get("limit")
    if not isinstance(key, str):
        raise Invalid(f"expected a key as text, got {key!r}", pointer=f"{pointer}/key")
    check_text(key, what="a key", most=KEY_LENGTH_MAX, pointer=f"{pointer}/key")
    if limit is not None and not 1 <= limit <= IN_FLIGHT_MAX:
        raise Invalid(
            f"expected a limit within 1-{IN_FLIGHT_MAX}, got {limit}", pointer=f"{pointer}/limit"
        )
    if concurrency.get("on_limit", "wait") not in {"wait", "skip"}:
        raise Invalid(
            f"expected wait or skip, got {concurrency['on_limit']!r}", pointer=f"{pointer}/on_limit"
        )


def check_run(new: NewRun) -> None:
    """Everything about an ad-hoc run except its payload."""
    check_work(new.handler, new.target)
    check_queue(new.queue)
    check_priority(new.priority)
    check_terms(new.options)
    if new.due_at is not None and new.delay is not None:
        raise Invalid("expected a time or a delay, got both", pointer="/delay")
    if new.due_at is not None:
        check_instant(new.due_at, pointer="/at")
    if new.delay is not None and not timedelta(0) <= new.delay <= DELAY_MAX:
        raise Invalid(
            f"expected a delay within 0 and 100 years, got {shown_duration(new.delay)}",
            pointer="/delay",
        )
