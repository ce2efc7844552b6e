"""Access tokens by OAuth2 client credentials: fetched under the guard, kept until nearly expired.

Whoever needs a token that is being fetched waits for that one. A token that a target does not
accept is forgotten once; a token endpoint that refuses is left alone for a while, whoever asks.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec

from betimes.domain.clock import Clock
from betimes.target.answer import Answer, NoAnswer, Patience, Request
from betimes.target.auth import Auth, NoSecret, basic
from betimes.target.classify import RETRIED, SERVER_ERRORS, SUCCESSES
from betimes.target.redact import UNREADABLE
from betimes.target.url import UrlPolicy, read_url

EXPIRES_SECONDS = 300.0
"""For a token that does not say how long it lasts."""
EXPIRES_SECONDS_MAX = 86_400.0
EARLY_SECONDS, EARLY_SHARE = 30.0, 0.1
REFUSED_SECONDS = 5.0
TOKENS_MAX = 10_000
TOKEN_LENGTH_MAX = 8_000

Send = Callable[[Request], Awaitable[Answer | NoAnswer]]
Key = tuple[UUID, str, str, str, str, bytes]


@dataclass(slots=True)
class _Kept:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: str = ""
    until: float = 0.0
    trouble: NoSecret | None = None


class Tokens:
    """The tokens of one process."""

    def __init__(self, *, send: Send, clock: Clock, patience: Patience) -> None:
        self._send = send
        self._clock = clock
        self._patience = patience
        self._kept: dict[Key, _Kept] = {}

    async def token(self, tenant: UUID, auth: Auth, secret: str, policy: UrlPolicy) -> str:
        """A token that is still good; raises `NoSecret` when there is none to be had."""
        kept = self._of(_key(tenant, auth, secret))
        if kept.until <= self._clock.monotonic():
            async with kept.lock:
                # Somebody may have fetched one, or failed to, while we waited.
                if kept.until <= self._clock.monotonic():
                    await self._fetch(kept, tenant, auth, secret, policy)
        if kept.trouble is not None:
            raise kept.trouble
        return kept.token

    def refused(self, tenant: UUID, auth: Auth, secret: str, token: str) -> None:
        """A target did not accept a token: the next one who asks fetches another."""
        kept = self._of(_key(tenant, auth, secret))
        if kept.token == token and kept.trouble is None:
            kept.until = 0.0

    def _of(self, key: Key) -> _Kept:
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= TOKENS_MAX:
                self._kept.clear()
            kept = self._kept[key] = _Kept()
        return kept

    async def _fetch(
        self, kept: _Kept, tenant: UUID, auth: Auth, secret: str, policy: UrlPolicy
    ) -> None:
        result = await self._send(_request(tenant, auth, secret, policy, self._patience))
        now = self._clock.monotonic()
        try:
            kept.token, seconds = _read(result)
        except NoSecret as trouble:
            kept.token, kept.trouble, kept.until = "", trouble, now + REFUSED_SECONDS
            return
        early = min(EARLY_SECONDS, EARLY_SHARE * seconds)
        kept.trouble, kept.until = None, now + seconds - early


def _key(tenant: UUID, auth: Auth, secret: str) -> Key:
    digest = blake2b(secret.encode(), digest_size=16).digest()
    return tenant, auth.token_url, auth.client_id, auth.scope, auth.audience, digest


def _request(
    tenant: UUID, auth: Auth, secret: str, policy: UrlPolicy, patience: Patience
) -> Request:
    form = {"grant_type": "client_credentials"}
    if auth.scope:
        form["scope"] = auth.scope
    if auth.audience:
        form["audience"] = auth.audience
    headers = ["content-type: application/x-www-form-urlencoded", "accept: application/json"]
    if auth.in_body:
        form |= {"client_id": auth.client_id, "client_secret": secret}
    else:
        # RFC 6749 wants both encoded like a form before they are joined.
        joined = basic(quote(auth.client_id, safe=""), quote(secret, safe=""))
        headers.append(f"authorization: Basic {joined}")
    return Request(
        tenant=tenant,
        url=read_url(auth.token_url, policy, pointer="/target/auth/token_url"),
        method="POST",
        headers=[*headers, "Expect:"],
        body=urlencode(form).encode(),
        patience=patience,
        addresses=policy.addresses,
    )


def _read(result: Answer | NoAnswer) -> tuple[str, float]:
    """The token and how long it lasts; what an endpoint says about a refusal is not repeated."""
    if isinstance(result, NoAnswer):
        raise NoSecret("TokenUnavailable", f"the token endpoint: {result.detail}")
    status = result.status
    if status not in SUCCESSES:
        again = status in RETRIED or status in SERVER_ERRORS
        raise NoSecret("TokenRefused", f"the token endpoint answered {status}", retryable=again)
    try:
        told = msgspec.json.decode(result.body, type=dict[str, Any])
    except UNREADABLE:
        told = {}
    token, seconds = told.get("access_token"), told.get("expires_in", EXPIRES_SECONDS)
    if not isinstance(token, str) or not 0 < len(token) <= TOKEN_LENGTH_MAX or not token.isascii():
        raise NoSecret("TokenRefused", "the token endpoint answered without a token")
    if not token.isprintable():
        raise NoSecret("TokenRefused", "the token endpoint answered with no usable token")
    try:
        seconds = float(seconds)
    except (TypeError, ValueError):
        seconds = EXPIRES_SECONDS
    return token, min(max(seconds, 1.0), EXPIRES_SECONDS_MAX)
