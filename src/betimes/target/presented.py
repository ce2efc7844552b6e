"""What secrets become for one request, and how long they are remembered for the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import Invalid, SchedulerError
from betimes.domain.origins import OpenSecret, covers, shown_origins
from betimes.domain.webhook import read_secret
from betimes.target.answer import Tls
from betimes.target.auth import NoSecret, Opened, basic, credentials, filled, newest
from betimes.target.definition import HttpTarget
from betimes.target.oauth import Tokens
from betimes.target.redact import Veil
from betimes.target.url import UrlPolicy

FRESH_SECONDS = 5.0
"""A secret that was changed or deleted is used no longer than this."""
STALE_SECONDS = 60.0
"""And no longer than this while nobody can say whether it was."""
REMEMBERED_MAX = 10_000
ASKING_MAX = 4
"""Questions at once: a crowd of runs with secrets of their own leaves room for others."""
NO_VEIL = Veil(())
MISSING = OpenSecret(())

OpenSecrets = Callable[[UUID, Sequence[str]], Awaitable[Opened]]
"""Values of the secrets of a tenant by name; those that do not exist are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """The parts of a request that are secret, and the veil that keeps them out of evidence."""

    headers: Sequence[str] = field(default=(), repr=False)
    tls: Tls | None = field(default=None, repr=False)
    signing: Sequence[bytes] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    veil: Veil = NO_VEIL


class Remembered:
    """Secrets of a moment ago, so that not every request asks the database."""

    def __init__(self, *, read: OpenSecrets, clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._few = asyncio.Semaphore(ASKING_MAX)
        self._known: dict[tuple[UUID, str], tuple[float, OpenSecret]] = {}

    async def open(self, tenant: UUID, names: Sequence[str]) -> Opened:
        """The values of secrets; raises `NoSecret` when nobody can be asked."""
        found = self._recent(tenant, names, self._clock.monotonic() - FRESH_SECONDS)
        if found is not None:
            return found
        async with self._few:
            return await self._ask(tenant, names)

    async def _ask(self, tenant: UUID, names: Sequence[str]) -> Opened:
        now = self._clock.monotonic()
        # Somebody may have asked for the same while we waited.
        found = self._recent(tenant, names, now - FRESH_SECONDS)
        if found is not None:
            return found
        try:
            opened = await self._read(tenant, names)
        except SchedulerError as error:
            found = self._recent(tenant, names, now - STALE_SECONDS)
            if found is None:
                raise NoSecret("SecretUnavailable", f"secrets cannot be read: {error}") from None
            return found
        if len(self._known) + len(names) > REMEMBERED_MAX:
            self._known.clear()
        for name in names:
            self._known[tenant, name] = now, opened.get(name, MISSING)
        return opened

    def _recent(self, tenant: UUID, names: Sequence[str], since: float) -> Opened | None:
        found: dict[str, OpenSecret] = {}
        for name in names:
            known = self._known.get((tenant, name))
            if known is None or known[0] < since:
                return None
            found[name] = known[1]
        return found


class Presenter:
    """Puts values in the places of references, just before a request is sent."""

    def __init__(self, *, open_secrets: OpenSecrets, tokens: Tokens) -> None:
        self._open = open_secrets
        self._tokens = tokens

    async def present(self, tenant: UUID, target: HttpTarget, policy: UrlPolicy) -> Presented:
        """Everything secret about a request; raises `NoSecret` when something is not there."""
        opened = await self._open(tenant, target.secrets)
        check_bound(target, opened)
        hidden = [newest(opened, name) for name in target.secrets if name in target.hidden]
        headers = [filled(line, opened) for line in target.private_headers]
        auth, token, secret = target.auth, "", ""
        if auth is not None:
            secret = newest(opened, auth.secret)
            if auth.kind == "oauth2":
                token = await self._tokens.token(tenant, auth, secret, policy)
                hidden.append(token)
                headers.append(f"authorization: Bearer {token}")
            else:
                headers.append(credentials(auth, opened))
            if auth.kind == "basic":
                hidden.append(basic(auth.username, secret))
        return Presented(
            headers=headers,
            tls=_tls(target, opened),
            signing=_signing(target, opened),
            token=token,
            secret=secret,
            veil=Veil(hidden),
        )

    def refused(self, tenant: UUID, target: HttpTarget, presented: Presented) -> None:
        """The target did not accept the token."""
        if target.auth is not None:
            self._tokens.refused(tenant, target.auth, presented.secret, presented.token)


def check_bound(target: HttpTarget, opened: Opened) -> None:
    """Refuse before anything is sent what would take a secret where it may not go.

    Raises:
        NoSecret: a secret is not bound to an origin that would see it, or what it stands for.

    """
    for name, origins in target.sent_to.items():
        if (found := opened.get(name)) is None or not found.values:
            continue
        for origin in origins:
            if not covers(found.origins, origin):
                raise NoSecret(
                    "SecretNotBound",
                    f"expected the secret {name!r} to be sent to {shown_origins(found.origins)}, "
                    f"which it is bound to, not to {origin}",
                )


def _signing(target: HttpTarget, opened: Opened) -> list[bytes] | None:
    """Every version signs, so that a receiver may have the old one or the new one."""
    if target.signing is None:
        return None
    newest(opened, target.signing)
    try:
        return [read_secret(value.decode()) for value in opened[target.signing].values]
    except (Invalid, UnicodeDecodeError):
        raise NoSecret(
            "SecretUnusable",
            f"expected whsec_ and base64 of 24-64 bytes in the secret {target.signing!r}",
            retryable=False,
        ) from None


def _tls(target: HttpTarget, opened: Opened) -> Tls | None:
    authorities = None if target.tls is None else target.tls.authorities
    if target.authorities_secret is not None:
        authorities = _pem(opened, target.authorities_secret, "CERTIFICATE")
    if target.certificate is None:
        return None if authorities is None else Tls(authorities=authorities)
    both = _pem(opened, target.certificate, "CERTIFICATE")
    if "PRIVATE KEY-----" not in both:
        raise NoSecret(
            "SecretUnusable",
            f"expected a certificate and its key in PEM in the secret {target.certificate!r}",
            retryable=False,
        )
    return Tls(authorities=authorities, certificate=both, key=both)


def _pem(opened: Opened, name: str, what: str) -> str:
    text = newest(opened, name)
    if f"-----BEGIN {what}-----" not in text:
        raise NoSecret("SecretUnusable", f"expected PEM in the secret {name!r}", retryable=False)
    return text
