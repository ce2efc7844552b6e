"""Traces over the days between asking and doing (W3C Trace Context).

A run does not continue the trace of whoever asked for it: a span a week long helps nobody. It has a
trace of its own, whose id is the run's id, and keeps the caller's as a link. Every attempt is a
span of that trace, so a worker, its targets and the service name the same thing without asking.
"""

import re
from hashlib import blake2b
from uuid import UUID

_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}(?P<more>-.*)?"
)
_NOWHERE = re.compile(r"0+")
_MEMBER = re.compile(
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
PARENT_LENGTH_MAX = 128
STATE_LENGTH_MAX, STATE_MEMBERS_MAX = 512, 32
SPAN_BYTES = 8


def read_traceparent(text: str | None) -> str | None:
    """The caller's position in its trace; what is none is ignored, as the standard wants."""
    if text is None or len(text) > PARENT_LENGTH_MAX:
        return None
    found = _PARENT.fullmatch(text.strip())
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return None
    if _NOWHERE.fullmatch(found["trace"]) or _NOWHERE.fullmatch(found["span"]):
        return None
    return f"00-{found['trace']}-{found['span']}-01"


def read_tracestate(text: str | None) -> str | None:
    """What the vendors along the caller's trace have to say; ignored whole when it is not valid."""
    if text is None or not text.strip() or len(text) > STATE_LENGTH_MAX:
        return None
    members = [member.strip() for member in text.split(",")]
    told = [member for member in members if member]
    if len(told) > STATE_MEMBERS_MAX or not all(_MEMBER.fullmatch(member) for member in told):
        return None
    return ",".join(told) or None


def trace_of(run: UUID) -> str:
    """The id of a run's trace."""
    return run.hex


def traceparent_of(run: UUID, attempt: int) -> str:
    """The span of one attempt, as a worker and its targets are told."""
    span = blake2b(run.bytes + attempt.to_bytes(4, "big"), digest_size=SPAN_BYTES).hexdigest()
    return f"00-{trace_of(run)}-{span}-01"
