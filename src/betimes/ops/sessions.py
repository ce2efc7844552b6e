"""Sessions of browsers: signing in, being recognised, signing out.

A cookie is a secret like a key; only its digest is kept. What was learned about one is believed for
two seconds, as with keys. A session ends when it was idle for long, when its day is over, and when
its member or key goes.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.clock import Clock
from betimes.domain.errors import Forbidden, Invalid
from betimes.domain.ids import TenantId, to_text
from betimes.domain.scopes import OF_ROLE
from betimes.domain.secrets import (
    PASSWORD_LENGTH_MAX,
    PASSWORD_LENGTH_MIN,
    SALT_BYTES,
    TOKEN_BYTES,
    password_digest,
    same,
    token_digest,
    token_text,
)
from betimes.ops.credentials import REJECTING, SUSPENDED, Credentials, Unknown
from betimes.ops.desk import Desk
from betimes.ops.keys import Caller
from betimes.ops.members import INVITATION
from betimes.store import members as rows
from betimes.store.members import SessionRow
from betimes.store.pool import Connection

IDLE = timedelta(minutes=30)
LONGEST = timedelta(hours=12)
SEEN_EVERY = timedelta(minutes=1)
BELIEVED_FOR = 2.0
KNOWN_MAX = 10_000
TRIES_MAX = 5
TRIES_WINDOW = 60.0
SESSION, CSRF = "session", "csrf"
NO_SALT = bytes(SALT_BYTES)
WRONG = "there is nobody with this address and password, or the code was used or has expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whom:
    """Whose session it is to be."""

    tenant: TenantId
    member: UUID | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session that was opened: its cookie and the word that unsafe requests repeat."""

    whom: Whom
    token: str
    csrf: str
    expires_at: datetime


class TooManyTries(Forbidden):
    """Somebody guesses the password of an account."""

    default_code = "rate_limited"


class Sessions:
    """Opens, recognises and ends sessions."""

    def __init__(
        self, *, desk: Desk, credentials: Credentials, clock: Clock, pepper: bytes
    ) -> None:
        self._desk = desk
        self._credentials = credentials
        self._clock = clock
        self.pepper = pepper
        self._known: dict[bytes, tuple[SessionRow | None, float]] = {}
        self._tries: dict[str, list[float]] = {}

    def forget_all(self) -> None:
        """Ask about every session anew: a member was changed here."""
        self._known.clear()

    async def by_key(self, text: str, address: str) -> Whom:
        """Who holds a key."""
        caller = await self._credentials.caller(text, address)
        return Whom(tenant=caller.tenant, key=caller.key)

    async def by_password(self, slug: str, email: str, password: str) -> Whom:
        """Who knows the password of an account; a wrong address costs as much as a wrong word."""
        email = email.strip().lower()
        self._count_try(f"{slug}:{email}")
        found = await rows.find_sign_in(self._desk.database, slug, email)
        salt = NO_SALT if found is None or found.salt is None else found.salt
        digest = await asyncio.to_thread(password_digest, password, salt)
        if found is None or found.password is None or not same(digest, found.password):
            raise Unknown(WRONG)
        return Whom(tenant=found.tenant, member=found.id)

    async def by_code(self, code: str, password: str | None) -> Whom:
        """Who was given a code; it works once, and may set the password."""
        salt = digest = None
        if password is not None:
            check_password(password)
            salt = self._desk.entropy(SALT_BYTES)
            digest = await asyncio.to_thread(password_digest, password, salt)
        now = self._clock.now()

        async def work(connection: Connection) -> tuple[TenantId, UUID] | None:
            kept = token_digest(code, self.pepper, purpose=INVITATION)
            return await rows.use_code(connection, kept, password=digest, salt=salt, now=now)

        found = await self._desk.transact(work, tenant=None)
        if found is None:
            raise Unknown(WRONG)
        return Whom(tenant=found[0], member=found[1])

    def _count_try(self, account: str) -> None:
        now = self._clock.monotonic()
        if len(self._tries) >= KNOWN_MAX:
            self._tries.clear()
        tries = [at for at in self._tries.get(account, []) if now - at < TRIES_WINDOW]
        if len(tries) >= TRIES_MAX:
            raise TooManyTries("too many tries to sign in with this account; wait a minute")
        self._tries[account] = [*tries, now]

    async def open(self, desk: Desk, whom: Whom) -> Opened:
        """A new session, inside the transaction of the desk."""
        token = token_text(desk.entropy(TOKEN_BYTES))
        now = self._clock.now()
        expires_at = now + LONGEST

        async def work(connection: Connection) -> None:
            await rows.insert_session(
                connection,
                self._digest(token),
                tenant=whom.tenant,
                member=whom.member,
                key=whom.key,
                now=now,
                expires_at=expires_at,
            )

        await desk.transact(work, tenant=None)
        return Opened(whom=whom, token=token, csrf=self.csrf_of(token), expires_at=expires_at)

    def csrf_of(self, token: str) -> str:
        """The word that a page of ours knows and a page of others does not."""
        return token_digest(token, self.pepper, purpose=CSRF).hex()

    async def caller(self, token: str, address: str) -> Caller:
        """Who signed in with this cookie."""
        digest = self._digest(token)
        row = await self._learn(digest)
        if row is None:
            raise Unknown("the session has ended; sign in again")
        if row.key is not None:
            return await self._credentials.by_id(row.key, address)
        if row.tenant_state >= SUSPENDED:
            raise Forbidden(
                f"the tenant is suspended: {row.tenant_reason or 'no reason given'}",
                code="tenant_suspended",
            )
        return member_of(row)

    async def _learn(self, digest: bytes) -> SessionRow | None:
        now = self._clock.monotonic()
        known = self._known.get(digest)
        if known is not None and known[1] > now:
            return known[0]
        moment = self._clock.now()
        row = await rows.read_session(
            self._desk.database, digest, now=moment, idle_since=moment - IDLE
        )
        if row is not None and moment - row.seen_at > SEEN_EVERY:
            await rows.see_session(self._desk.database, digest, now=moment)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[digest] = (row, now + BELIEVED_FOR)
        return row

    async def close(self, desk: Desk, token: str) -> None:
        """End a session."""

        async def work(connection: Connection) -> None:
            await rows.end_session(connection, self._digest(token))

        await desk.transact(work, tenant=None)
        self._known.pop(self._digest(token), None)

    def _digest(self, token: str) -> bytes:
        return token_digest(token, self.pepper, purpose=SESSION)


def check_password(password: str) -> None:
    """Long enough that guessing is hopeless at the rate we allow."""
    if not PASSWORD_LENGTH_MIN <= len(password) <= PASSWORD_LENGTH_MAX:
        raise Invalid(
            f"expected a password of {PASSWORD_LENGTH_MIN}-{PASSWORD_LENGTH_MAX} characters",
            pointer="/password",
        )


def member_of(row: SessionRow) -> Caller:
    """The caller a member's session stands for."""
    return Caller(
        key=to_text("mem", row.member) if row.member is not None else "",
        name=row.name or "",
        kind="member",
        tenant=row.tenant,
        slug=row.tenant_slug,
        timezone=row.timezone,
        scopes=frozenset(OF_ROLE.get(row.role or "", frozenset())),
        queues=None,
        expires_at=row.expires_at,
        quotas=_numbers(row.quotas),
        settings=dict(row.settings),
        rejecting=row.tenant_state >= REJECTING,
        via="member",
    )


def _numbers(quotas: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in quotas.items() if isinstance(value, int)}
