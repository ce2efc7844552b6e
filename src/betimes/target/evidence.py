"""What is kept about an attempt: for people, and for the next step of a workflow."""

from base64 import b64encode
from typing import Any

import msgspec

from betimes.target.answer import Answer, NoAnswer, Timings
from betimes.target.redact import Redaction, Veil

EVIDENCE_BYTES_MAX = 60_000
BODY_BYTES_LEAST = 4_096
HEADERS_MAX, HEADER_BYTES_MAX = 64, 8_192
LAST_URL_LENGTH_MAX = 2_000
PLAIN, NO_VEIL = Redaction(), Veil(())


def evidence_of(
    result: Answer | NoAnswer,
    *,
    url: str,
    last_url: str | None = None,
    redaction: Redaction = PLAIN,
    veil: Veil = NO_VEIL,
) -> bytes:
    """A result as JSON, small enough for its column whatever the target has sent.

    `last_url` is where redirects have led, if they were followed.
    """
    told: dict[str, Any] = {"url": url}
    if last_url is not None and last_url != url:
        told["redirected_to"] = _clean(last_url, veil)[:LAST_URL_LENGTH_MAX]
    if isinstance(result, NoAnswer):
        told |= {"error": result.trouble.value, "detail": _clean(result.detail, veil)}
    else:
        headers = _headers(result, redaction, veil)
        told |= {"status": result.status, "headers": headers, "reused": result.reused}
    if result.address:
        told["address"] = result.address
    told["timings_ms"] = _timings(result.timings)
    if isinstance(result, Answer):
        body, truncated = result.body, result.truncated
        if veil:
            body = veil.content(body, truncated=truncated)
        body = redaction.body(body, truncated=truncated)
        encoded = msgspec.json.encode(told | _body(body, truncated=truncated))
        if len(encoded) > EVIDENCE_BYTES_MAX:
            # Escaped control characters can make six bytes of one.
            encoded = msgspec.json.encode(told | _body(body[:BODY_BYTES_LEAST], truncated=True))
        return encoded
    return msgspec.json.encode(told)


def _clean(text: str, veil: Veil) -> str:
    plain = text.replace("\0", "")
    return veil.text(plain) if veil else plain


def _body(body: bytes, *, truncated: bool) -> dict[str, Any]:
    if b"\0" in body:  # which no JSON column takes
        return {"body_base64": b64encode(body).decode("ascii"), "truncated": truncated}
    try:
        return {"body": body.decode(), "truncated": truncated}
    except UnicodeDecodeError as error:
        # A character may have been cut in two at the end; anything earlier is not text.
        if truncated and len(body) - error.start < 4 and error.reason == "unexpected end of data":  # noqa: PLR2004
            return {"body": body[: error.start].decode(), "truncated": True}
    return {"body_base64": b64encode(body).decode("ascii"), "truncated": truncated}


def _headers(answer: Answer, redaction: Redaction, veil: Veil) -> dict[str, str]:
    found: dict[str, str] = {}
    room = HEADER_BYTES_MAX
    for name, value in answer.headers[:HEADERS_MAX]:
        shown = redaction.header(name, _clean(value, veil))
        room -= len(name) + len(shown)
        if room < 0:
            break
        found[name] = f"{found[name]}, {shown}" if name in found else shown
    return found


def _timings(timings: Timings) -> dict[str, float]:
    steps = {
        "dns": timings.dns,
        "connect": timings.connect,
        "tls": timings.tls,
        "first_byte": timings.first_byte,
        "total": timings.total,
    }
    return {name: value for name, value in steps.items() if value is not None}
