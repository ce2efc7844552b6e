"""One request and its answer without a network: what to send, what came back, when to retry.

Both clients use these functions; they differ only in how bytes travel.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from betimes.sdk.errors import ApiError, Unreachable, error_of
from betimes.sdk.operation import Operation
from betimes.wire.problem import Problem

JSON = "application/json"
RETRY_FIRST_SECONDS, RETRY_MOST_SECONDS = 0.2, 5.0
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
NOT_PERFORMED = frozenset({429, 503})
"""Answers that promise that nothing has happened."""
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What travels to the server."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout: float
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Response:
    """What came back, whole; header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Any:
        """The body as JSON; None when there is none."""
        return msgspec.json.decode(self.body) if self.body else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a caller of an operation has said."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = msgspec.UNSET
    if_match: str | None = None
    idempotency_key: str | None = None
    timeout: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a client talks: its key, its patience, its name."""

    api_key: str | None = field(repr=False)
    timeout: float
    retry_for: float
    """Seconds, counted from the first try, within which a call is tried again."""
    agent: str
    new_key: Callable[[], str]
    roll: Callable[[], float]
    tenant: str | None = None
    told: Callable[[Response | Unreachable, float], None] | None = None
    """Hears why a call is tried again, and in how many seconds."""


def request_of(operation: Operation, given: Given, manner: Manner) -> Request:
    """The request for one call; every POST that takes an idempotency key gets one."""
    headers = {"accept": operation.accepts, "user-agent": manner.agent, **given.headers}
    if manner.api_key is not None:
        headers["authorization"] = f"Bearer {manner.api_key}"
    if manner.tenant is not None:
        headers["betimes-tenant"] = manner.tenant
    body = None
    if given.body is not msgspec.UNSET:
        raw = isinstance(given.body, bytes)
        body = given.body if raw else encode(without_unset(given.body))
        headers["content-type"] = "application/octet-stream" if raw else operation.media
    elif operation.method in ("POST", "PUT", "PATCH"):
        headers["content-length"] = "0"
    if given.if_match is not None:
        headers["if-match"] = given.if_match
    keyed = operation.keyed and operation.method == "POST"
    key = given.idempotency_key or (manner.new_key() if keyed else None)
    if key is not None:
        headers["idempotency-key"] = key
    return Request(
        method=operation.method,
        path=_path(operation.path, given.path) + _query(given.query),
        headers=headers,
        body=body,
        timeout=manner.timeout if given.timeout is None else given.timeout,
        repeatable=operation.method in REPEATABLE or (key is not None and operation.keyed),
    )


def value_of(operation: Operation, response: Response) -> Any:
    """What an answer means.

    Raises:
        ApiError: the server refused; the class tells the code.

    """
    if response.status >= 400:  # noqa: PLR2004 -- HTTP
        raise problem_of(response)
    kind = operation.answers.get(response.status, next(iter(operation.answers.values()), None))
    if kind is None or not response.body:
        return None
    if kind is bytes:
        return response.body
    if kind is str:
        return response.body.decode()
    return msgspec.json.decode(response.body, type=kind, strict=False)


def problem_of(response: Response) -> ApiError:
    """The error that an answer tells."""
    try:
        problem = msgspec.json.decode(response.body, type=Problem)
    except msgspec.DecodeError:
        text = response.body[:200].decode(errors="replace")
        problem = Problem(
            type="about:blank",
            title="Unexpected answer",
            status=response.status,
            code="unexpected",
            detail=f"expected a problem document, got status {response.status}: {text!r}",
            instance="",
            request_id=response.headers.get("request-id", ""),
            retryable=False,
        )
    return error_of(problem, retry_after=_seconds(response.headers.get("retry-after")))


def pause_after(
    request: Request,
    failure: Response | Unreachable,
    *,
    tried: int,
    spent: float,
    manner: Manner,
) -> float | None:
    """Seconds to wait before the same request is sent again; None when it must not be.

    The pauses grow, and nobody waits in step with others. `spent` is how long it was tried; the
    last try is made when that time is over, unless the server wants to be left alone for longer.
    """
    left = manner.retry_for - spent
    if left <= 0:
        return None
    hint: float | None = None
    if isinstance(failure, Unreachable):
        if failure.lasting or (failure.sent and not request.repeatable):
            return None
    else:
        safe = failure.status in NOT_PERFORMED or request.repeatable
        if not safe or not _says_retryable(failure):
            return None
        hint = _seconds(failure.headers.get("retry-after"))
    if hint is not None and hint > left:
        return None
    most = min(RETRY_MOST_SECONDS, RETRY_FIRST_SECONDS * 2.0 ** min(tried - 1, 10))
    return min(left, max(hint or 0.0, most * manner.roll()))


def without_unset(body: Any) -> Any:
    """A mapping without what was not said; anything else as it is."""
    if not isinstance(body, dict):
        return body
    return {name: value for name, value in body.items() if value is not msgspec.UNSET}


def _says_retryable(response: Response) -> bool:
    if response.status < 400:  # noqa: PLR2004 -- HTTP
        return False
    return problem_of(response).problem.retryable or response.status in NOT_PERFORMED


def _path(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template


def _query(values: Mapping[str, Any]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is msgspec.UNSET or value is None:
            continue
        several = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(one)) for one in several]
    return f"?{urlencode(pairs)}" if pairs else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat() if isoformat is not None else value)


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None
