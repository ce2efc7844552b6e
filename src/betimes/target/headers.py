"""Headers of outgoing requests: which ones a user may set, and which ones we do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from betimes.domain import webhook
from betimes.domain.errors import BadTarget, TooLarge

HEADERS_MAX = 100
HEADER_BYTES_MAX = 32_768
NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OUR_PREFIXES = ("betimes-", "proxy-", "webhook-")
USER_AGENT = "betimes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What every request says about the run it is an attempt of."""

    run_id: str
    attempt: int
    fence: int
    scheduled_for: datetime
    traceparent: str
    tracestate: str | None = None


def check_headers(headers: Mapping[str, str], *, pointer: str = "/target/headers") -> None:
    """Refuse headers that would not be what they seem, or that are ours to set."""
    if len(headers) > HEADERS_MAX:
        raise TooLarge(
            f"expected at most {HEADERS_MAX} headers, got {len(headers)}", pointer=pointer
        )
    total = 0
    for name, value in headers.items():
        where = f"{pointer}/{name}"
        if not NAME.fullmatch(name):
            raise BadTarget(f"expected the name of a header, got {name[:80]!r}", pointer=pointer)
        if not VALUE.fullmatch(value) or value != value.strip():
            raise BadTarget(
                f"expected the value of {name} on one line, without blanks around it", pointer=where
            )
        if is_ours(name):
            raise BadTarget(f"expected a header that can be chosen, got {name}", pointer=where)
        total += len(name) + len(value)
    if total > HEADER_BYTES_MAX:
        raise TooLarge(
            f"expected headers of at most {HEADER_BYTES_MAX} bytes, got {total}", pointer=pointer
        )


def is_ours(name: str) -> bool:
    """Whether only we set a header."""
    lower = name.lower()
    return lower in OURS or lower.startswith(OUR_PREFIXES)


def our_headers(facts: Facts, signature: tuple[int, str] | None) -> list[str]:
    """The lines that identify and sign an attempt; `signature` is its time and its text."""
    at = facts.scheduled_for.astimezone(UTC).replace(tzinfo=None)
    lines = [
        f'idempotency-key: "{facts.run_id}"',
        f"betimes-run-id: {facts.run_id}",
        f"betimes-attempt: {facts.attempt}",
        f"betimes-fence: {facts.fence}",
        f"betimes-scheduled-for: {at.isoformat(timespec='microseconds')}Z",
        f"traceparent: {facts.traceparent}",
    ]
    if facts.tracestate:
        lines.append(f"tracestate: {facts.tracestate}")
    if signature is not None:
        timestamp, text = signature
        lines += [
            f"{webhook.ID}: {facts.run_id}",
            f"{webhook.TIMESTAMP}: {timestamp}",
            f"{webhook.SIGNATURE}: {text}",
        ]
    return lines
