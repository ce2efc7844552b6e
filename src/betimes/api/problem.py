"""Errors as answers: RFC 9457, one shape for all of them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import ceil
from typing import Any

import msgspec

from betimes.api.codes import CODES
from betimes.domain.errors import (
    AmbiguousText,
    CyclicGraph,
    FencedOut,
    Locked,
    Overloaded,
    Refused,
    Unavailable,
)
from betimes.ops.quotas import QuotaReached
from betimes.wire.base import shown_maybe
from betimes.wire.problem import FieldError, Problem

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = "1"
QUOTA_WAIT = timedelta(minutes=1)
"""What is stored goes when somebody removes it: nobody knows when, and asking at once is no use."""
STATUS_OF_DEFAULT = {"refused": "invalid_parameter", "bad_setting": "invalid_parameter"}


class Trouble(Exception):
    """An answer that is a problem, raised by whoever notices it."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.more = more

    @property
    def status(self) -> int:
        """The status that goes with the code."""
        return CODES[self.code].status


def refused(error: Refused) -> Trouble:
    """What the caller can fix, in the words it was refused with."""
    code = STATUS_OF_DEFAULT.get(error.code, error.code)
    more: dict[str, Any] = {}
    headers: dict[str, str] = {}
    if isinstance(error, AmbiguousText):
        more["alternatives"] = list(error.alternatives)
    if isinstance(error, CyclicGraph):
        more["cycle"] = list(error.cycle)
    if isinstance(error, QuotaReached):
        reset = shown_maybe(error.resets_at)
        more |= {"quota": error.quota, "limit": error.limit, "used": error.used, "resets_at": reset}
        wait = QUOTA_WAIT if error.wait is None else error.wait
        headers["Retry-After"] = str(max(1, ceil(wait.total_seconds())))
    if error.code == "idempotency_in_progress":
        headers["Retry-After"] = RETRY_AFTER_SECONDS
    # A code we do not know keeps its sentence and becomes the plainest refusal.
    code = code if code in CODES else "invalid_parameter"
    errors = (
        [FieldError(pointer=error.pointer, code=error.code, detail=error.sentence)]
        if error.pointer
        else []
    )
    return Trouble(code, error.sentence, errors=errors, headers=headers, **more)


def unavailable(error: Unavailable) -> Trouble:
    """No room, or nobody there; never the words of the database."""
    wait = {"Retry-After": RETRY_AFTER_SECONDS}
    if isinstance(error, Overloaded):
        return Trouble("overloaded", "there is no room at the moment; ask again", headers=wait)
    return Trouble("database_unavailable", "the database does not answer; ask again", headers=wait)


def trouble_of(error: Exception) -> Trouble:
    """Any error as an answer; what we did not expect says nothing about itself."""
    match error:
        case Trouble():
            return error
        case Refused():
            return refused(error)
        case Unavailable():
            return unavailable(error)
        case Locked():
            return Trouble("vault_locked", "this node can neither seal nor open what is sealed")
        case FencedOut():
            return Trouble("lease_lost", str(error))
        case TimeoutError():
            return Trouble("upstream_timeout", "the request took longer than it may")
        case _:
            return Trouble("internal", "something went wrong on our side; it has been noted")


def body_of(trouble: Trouble, request_id: str) -> bytes:
    """The JSON text of a problem."""
    code = CODES[trouble.code]
    problem = Problem(
        type=f"/v1/errors/{code.code}",
        title=code.title,
        status=code.status,
        code=code.code,
        detail=trouble.detail,
        instance=f"urn:betimes:request:{request_id}",
        request_id=request_id,
        retryable=code.retryable,
        errors=trouble.errors,
    )
    told = msgspec.to_builtins(problem)
    return msgspec.json.encode({**told, **trouble.more})
