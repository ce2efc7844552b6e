"""A target as jobs and runs keep it: a request described in JSON."""

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from betimes.domain.errors import BadTarget, Invalid
from betimes.domain.spec import from_ms
from betimes.target.answer import Tls
from betimes.target.auth import REFERENCE, Auth, read_auth, read_name, references_in
from betimes.target.classify import StatusRange
from betimes.target.headers import check_headers
from betimes.target.redact import Redaction
from betimes.target.url import TargetUrl, UrlPolicy, read_url

TYPE = "http"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods that carry the payload of the run when the target has no body of its own."""
TIMEOUT = timedelta(seconds=30)
TIMEOUT_MIN, TIMEOUT_MAX = timedelta(seconds=1), timedelta(minutes=15)
REDIRECTS_MAX = 5
NONE: frozenset[str] = frozenset()
SIGNATURE = "webhook-signature"
CODES = re.compile(r"([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?")
JSON, TEXT, BYTES = "application/json", "text/plain; charset=utf-8", "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """A request to be made, read and checked."""

    url: TargetUrl
    method: str
    headers: tuple[str, ...]
    """Lines, with a content type wherever there may be a body."""
    body: bytes | None
    sends_payload: bool
    timeout: timedelta
    success_codes: tuple[StatusRange, ...]
    redirects: int
    tls: Tls | None
    auth: Auth | None = None
    signing: str | None = None
    """The secret that signs requests instead of the tenant's own."""
    certificate: str | None = None
    """The secret with the certificate we show, and its key."""
    authorities_secret: str | None = None
    private_headers: tuple[str, ...] = ()
    """Lines that refer to secrets."""
    private: frozenset[str] = NONE
    """Names of headers that hold secrets once they are sent."""
    secrets: tuple[str, ...] = ()
    """Every secret it refers to."""
    hidden: frozenset[str] = NONE
    """Those of them that the target gets to see, and may send back."""
    sent_to: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The origins that would see each secret, or what was got for it, as a token is."""
    redaction: Redaction = field(default_factory=Redaction)


def read_target(stored: Mapping[str, Any], policy: UrlPolicy) -> HttpTarget:
    """Read what is stored; raises `BadTarget` or `Invalid` with a pointer when it may not be."""
    address = str(stored.get("url", ""))
    if REFERENCE.search(address):
        # It would be sent as it stands here, to people who can do nothing with it.
        raise Invalid(
            "expected secrets in `headers` or `auth`, got one in the URL, where logs would keep it",
            pointer="/target/url",
        )
    url = read_url(address, policy)
    method = str(stored.get("method", "POST"))
    if method not in METHODS:
        raise Invalid(
            f"expected one of {', '.join(METHODS)}, got {method!r}", pointer="/target/method"
        )
    headers = dict(stored.get("headers") or {})
    check_headers(headers)
    body, kind = _body(stored)
    sends_payload = body is None and method in WITH_BODY
    if (body is not None or sends_payload) and not _has(headers, "content-type"):
        headers["content-type"] = kind
    return HttpTarget(
        url=url,
        method=method,
        headers=tuple(
            f"{name}: {value}" if value else f"{name};"
            for name, value in headers.items()
            if not REFERENCE.search(value)
        ),
        body=body,
        sends_payload=sends_payload,
        timeout=_timeout(stored),
        success_codes=read_codes(stored.get("success_codes") or ()),
        redirects=_redirects(stored),
        tls=_tls(stored),
        redaction=_redaction(stored, policy),
        **_secrets(stored, headers, policy, url),
    )


def _secrets(
    stored: Mapping[str, Any], headers: Mapping[str, str], policy: UrlPolicy, url: TargetUrl
) -> dict[str, Any]:
    """What refers to secrets; nothing at all for most targets."""
    auth = read_auth(stored.get("auth"))
    tokens: dict[str, tuple[str, ...]] = {}
    if auth is not None and auth.kind == "oauth2":
        giver = read_url(auth.token_url, policy, pointer="/target/auth/token_url")
        # The target never sees the secret, but whoever sees the token can do what it stands for.
        tokens = {auth.secret: (giver.origin, url.origin)}
    signing = _reference(stored, "secret_ref")
    certificate = _reference(stored, "client_certificate")
    authorities = REFERENCE.fullmatch(stored.get("ca_certificates") or "")
    private = {name: value for name, value in headers.items() if REFERENCE.search(value)}
    if auth is not None:
        name = auth.header or "authorization"
        if _has(headers, name.lower()):
            raise Invalid(
                f"expected {name} in headers or in auth, got both", pointer="/target/auth"
            )
    hidden = references_in(private.values()) + ([] if auth is None else [auth.secret])
    others = [signing, certificate, None if authorities is None else authorities[1]]
    names = {*hidden, *(name for name in others if name is not None)}
    if not names:
        return {}
    proofs = [] if signing is None else [SIGNATURE]
    ours = () if auth is None else ((auth.header or "authorization").lower(),)
    return {
        "auth": auth,
        "signing": signing,
        "certificate": certificate,
        "authorities_secret": None if authorities is None else authorities[1],
        "private_headers": tuple(f"{name}: {value}" for name, value in private.items()),
        "private": frozenset([*(name.lower() for name in private), *ours, *proofs]),
        "secrets": tuple(sorted(names)),
        "hidden": frozenset(hidden),
        "sent_to": dict.fromkeys(names, (url.origin,)) | tokens,
    }


def _reference(stored: Mapping[str, Any], member: str) -> str | None:
    value = stored.get(member)
    return None if value is None else read_name(value, pointer=f"/target/{member}")


def _redaction(stored: Mapping[str, Any], policy: UrlPolicy) -> Redaction:
    wanted = stored.get("redact") or {}
    return policy.redaction.and_also(wanted.get("headers") or (), wanted.get("paths") or ())


def read_codes(codes: Sequence[object]) -> tuple[StatusRange, ...]:
    """Status codes as numbers or as texts such as `200-204`."""
    ranges = []
    for place, code in enumerate(codes):
        found = CODES.fullmatch(str(code))
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise Invalid(
                f"expected a status such as 200 or 200-204, got {str(code)[:40]!r}",
                pointer=f"/target/success_codes/{place}",
            )
        ranges.append(StatusRange(int(found[1]), int(found[2] or found[1])))
    return tuple(ranges)


def _body(stored: Mapping[str, Any]) -> tuple[bytes | None, str]:
    if stored.get("body") is not None and stored.get("body_base64") is not None:
        raise Invalid(
            "expected a body or a body in base64, got both", pointer="/target/body_base64"
        )
    if (encoded := stored.get("body_base64")) is not None:
        try:
            return b64decode(encoded, validate=True), BYTES
        except (BadBase64, ValueError):
            raise Invalid("expected base64", pointer="/target/body_base64") from None
    body = stored.get("body")
    if body is None:
        return None, JSON
    if isinstance(body, str):
        return body.encode(), TEXT
    return msgspec.json.encode(body), JSON


def _timeout(stored: Mapping[str, Any]) -> timedelta:
    given = stored.get("timeout_ms")
    timeout = TIMEOUT if given is None else from_ms(given)
    if not TIMEOUT_MIN <= timeout <= TIMEOUT_MAX:
        raise Invalid(
            f"expected a timeout within {TIMEOUT_MIN.seconds} s and {TIMEOUT_MAX.seconds} s, "
            f"got {timeout.total_seconds():g} s",
            pointer="/target/timeout",
        )
    return timeout


def _redirects(stored: Mapping[str, Any]) -> int:
    redirects = int(stored.get("follow_redirects") or 0)
    if not 0 <= redirects <= REDIRECTS_MAX:
        raise Invalid(
            f"expected to follow 0-{REDIRECTS_MAX} redirects, got {redirects}",
            pointer="/target/follow_redirects",
        )
    return redirects


def _tls(stored: Mapping[str, Any]) -> Tls | None:
    authorities = stored.get("ca_certificates")
    if authorities is None or REFERENCE.fullmatch(authorities):
        return None
    if "-----BEGIN CERTIFICATE-----" not in authorities:
        raise BadTarget("expected certificates in PEM", pointer="/target/ca_certificates")
    return Tls(authorities=authorities)


def _has(headers: Mapping[str, str], name: str) -> bool:
    return any(key.lower() == name for key in headers)
