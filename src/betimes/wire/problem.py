"""The shape of every error."""

from betimes.wire.base import Shown


class FieldError(Shown):
    """One thing that is wrong, and where."""

    pointer: str
    code: str
    detail: str


class Problem(Shown):
    """RFC 9457, with a stable code."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str
    request_id: str
    retryable: bool
    errors: list[FieldError] = []
