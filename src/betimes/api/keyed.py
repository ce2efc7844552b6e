"""Idempotency keys of requests, as the IETF draft has them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from betimes.api.call import Request
from betimes.api.problem import Trouble
from betimes.api.route import Keyed, Route
from betimes.ops.idempotency import KEY_LENGTH_MAX, IdempotencyKey, fingerprint_of
from betimes.ops.tenant_settings import idempotency_retention

HEADER = b"idempotency-key"
ALIAS = "idempotencyKey"


def read_idempotency_key(
    route: Route, request: Request, body: Any, settings: Mapping[str, Any]
) -> IdempotencyKey | None:
    """The key of a request with what it was used for; None where there is none and none needed."""
    if route.keyed is Keyed.NO:
        return None
    if HEADER in request.doubled:
        raise Trouble("idempotency_key_invalid", "expected one Idempotency-Key, got several")
    said = request.header(HEADER)
    key = _unquoted(said) if said is not None else getattr(body, "idempotency_key", None)
    if key is None:
        if route.keyed is Keyed.REQUIRED:
            raise Trouble(
                "idempotency_key_required", "expected an Idempotency-Key header, got none"
            )
        return None
    if not 1 <= len(key) <= KEY_LENGTH_MAX or not key.isprintable():
        raise Trouble(
            "idempotency_key_invalid",
            f"expected a key of 1-{KEY_LENGTH_MAX} printable characters, got {len(key)}",
        )
    told = b"" if body is None else _canonical(body)
    return IdempotencyKey(
        key=key,
        fingerprint=fingerprint_of(request.method, request.path, request.query_string, told),
        keep_for=idempotency_retention(settings),
    )


def _canonical(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body, order="deterministic")


def _unquoted(text: str) -> str:
    """A structured-field string, or bare text."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return text
