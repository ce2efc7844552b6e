"""Who is calling: a key's text becomes a caller, with few questions to the database.

What was learned about a key is believed for a few seconds, so a revocation bites within that time
everywhere, and at once on the node that made it. A key that was not copied whole is refused by its
checksum without asking; an unknown one costs the same digest as a known one.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from ipaddress import ip_address, ip_network

from betimes.domain.clock import Clock
from betimes.domain.errors import Forbidden, Refused, Unavailable
from betimes.domain.ids import TenantId
from betimes.domain.key_text import DIGEST_BYTES, digest_of, read_key
from betimes.ops.asking import Asking
from betimes.ops.keys import ADMIN, Caller
from betimes.store.database import Database
from betimes.store.keys import Credential, note_use, read_credential, read_tenant_state

BELIEVED_FOR = timedelta(seconds=2)
KNOWN_MAX = 10_000
TOLD_TO = timedelta(hours=1)
NOTED_EVERY_SECONDS = 10.0
REJECTING, SUSPENDED = 1, 2
NOBODY = bytes(DIGEST_BYTES)
SEAL_BYTES = 16
MEMBER = "mem_"
"""What the ids of members begin with, beside those of keys."""


class Unknown(Refused):
    """The credentials do not name anybody."""

    default_code = "invalid_credentials"


@dataclass(slots=True)
class Known:
    """What was learned about a key id, and until when it is believed."""

    credential: Credential | None
    until: float
    caller: Caller | None = None
    """Who it is, once somebody has shown the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTenant:
    """What was learned about a tenant, and until when it is believed; no state for one gone."""

    state: int | None
    reason: str | None
    until: float


class Credentials:
    """Checks keys."""

    def __init__(self, *, database: Database, clock: Clock, pepper: bytes) -> None:
        self._database = database
        self._clock = clock
        self._pepper = pepper
        self._known: dict[str, Known] = {}
        self._shown: dict[bytes, Known] = {}
        """Whole keys that were right, by a digest of their text."""
        self._used: dict[str, None] = {}
        self._asking: Asking[str, Known] = Asking()
        self._tenants: dict[TenantId, KnownTenant] = {}
        self._asking_tenants: Asking[TenantId, KnownTenant] = Asking()

    def forget(self, key: str) -> None:
        """Ask about a key anew: it was changed here."""
        self._asking.forget(key)
        if (known := self._known.pop(key, None)) is not None:
            known.until = 0.0

    def forget_all(self) -> None:
        """Ask about every key anew: a tenant was changed here."""
        self._asking.forget_all()
        for known in self._known.values():
            known.until = 0.0
        self._known.clear()
        self._shown.clear()
        self._asking_tenants.forget_all()
        self._tenants.clear()

    async def caller(self, text: str, address: str) -> Caller:
        """Who holds this key, or a refusal that tells nothing about others."""
        seal = blake2b(text.encode(), key=self._pepper, digest_size=SEAL_BYTES).digest()
        seen = self._shown.get(seal)
        if seen is not None and seen.credential and seen.caller and self._believed(seen):
            self._check(seen.credential, address)
            return seen.caller
        key = read_key(text)
        if key is None:
            raise Unknown("expected a whole key like btm_sk_…, got something else")
        known = await self._learn(key.id)
        credential = known.credential
        digest = digest_of(key.secret, self._pepper)
        kept = NOBODY if credential is None else credential.digest
        if not hmac.compare_digest(digest, kept) or credential is None:
            raise Unknown("there is no such key, or it was revoked")
        if credential.key.kind != key.kind or credential.key.revoked_at is not None:
            raise Unknown("there is no such key, or it was revoked")
        self._check(credential, address)
        if known.caller is None:
            known.caller = caller_of(credential)
            # Once per belief, not per request: a busy key costs one row per hour and node.
            if _is_news(credential.key.last_used_at, self._clock.now()):
                self._used[key.id] = None
        if len(self._shown) >= KNOWN_MAX:
            self._shown.clear()
        self._shown[seal] = known
        return known.caller

    async def by_id(self, key: str, address: str) -> Caller:
        """The caller of a key whose secret was checked before, as long as the key is good."""
        credential = (await self._learn(key)).credential
        if credential is None or credential.key.revoked_at is not None:
            raise Unknown("there is no such key, or it was revoked")
        self._check(credential, address)
        return caller_of(credential)

    async def check_tenant(self, tenant: TenantId) -> None:
        """Refuse who acts for a tenant without a key of it, as its keys would be refused."""
        known = self._tenants.get(tenant)
        if known is None or known.until <= self._clock.monotonic():
            known = await self._asking_tenants.ask(tenant, lambda: self._read_tenant(tenant))
        if known.state is None:
            raise Unknown("there is no such tenant")
        _check_state(known.state, known.reason)

    async def check_giver(self, tenant: TenantId, key: str) -> None:
        """Refuse what somebody gave away who could not do so any more.

        From where it is used does not matter: it was given to be used elsewhere.
        """
        await self.check_tenant(tenant)
        if key.startswith(MEMBER):
            return
        credential = (await self._learn(key)).credential
        if credential is None or credential.key.revoked_at is not None:
            raise Unknown("there is no such key, or it was revoked")
        self._check_life(credential)

    async def _read_tenant(self, tenant: TenantId) -> KnownTenant:
        until = self._clock.monotonic() + BELIEVED_FOR.total_seconds()
        found = await read_tenant_state(self._database, tenant)
        state, reason = (None, None) if found is None else found
        if len(self._tenants) >= KNOWN_MAX:
            self._tenants.clear()
        known = self._tenants[tenant] = KnownTenant(state=state, reason=reason, until=until)
        return known

    def _check_life(self, credential: Credential) -> None:
        key = credential.key
        if key.expires_at is not None and key.expires_at <= self._clock.now():
            raise Unknown("the key has expired", code="expired_credentials")

    def _check(self, credential: Credential, address: str) -> None:
        key = credential.key
        self._check_life(credential)
        if key.networks is not None and not _within(address, key.networks):
            raise Forbidden("the key may not be used from this address", code="ip_not_allowed")
        # An administrator whose own tenant is suspended must still be able to end that.
        if key.kind != ADMIN:
            _check_state(credential.tenant_state, credential.tenant_reason)

    async def note_use(self) -> int:
        """Write down which keys were used: one statement for all of them; how many."""
        used, self._used = self._used, {}
        if used:
            await note_use(self._database, list(used), self._clock.now())
        return len(used)

    async def run(self) -> None:
        """Write it down now and then, until cancelled; what an outage keeps from it comes later."""
        while True:
            await self._clock.sleep(NOTED_EVERY_SECONDS)
            try:
                await self.note_use()
            except Unavailable:
                continue

    async def _learn(self, key: str) -> Known:
        known = self._known.get(key)
        if known is not None and self._believed(known):
            return known
        return await self._asking.ask(key, lambda: self._read(key))

    async def _read(self, key: str) -> Known:
        until = self._clock.monotonic() + BELIEVED_FOR.total_seconds()
        found = await read_credential(self._database, key)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        known = self._known[key] = Known(found, until)
        return known

    def _believed(self, known: Known) -> bool:
        return known.until > self._clock.monotonic()


def _check_state(state: int, reason: str | None) -> None:
    if state >= SUSPENDED:
        raise Forbidden(
            f"the tenant is suspended: {reason or 'no reason given'}", code="tenant_suspended"
        )


def caller_of(credential: Credential) -> Caller:
    """The caller a credential stands for."""
    key = credential.key
    return Caller(
        key=key.id,
        name=key.name,
        kind=key.kind,
        tenant=key.tenant,
        slug=credential.tenant_slug,
        timezone=credential.timezone,
        scopes=frozenset(key.scopes),
        queues=None if key.queues is None else frozenset(key.queues),
        networks=key.networks,
        expires_at=key.expires_at,
        quotas=_numbers(credential.quotas),
        settings=dict(credential.settings),
        rejecting=credential.tenant_state >= REJECTING,
    )


def _is_news(last_used_at: datetime | None, now: datetime) -> bool:
    """Use is told to the hour, so a busy key costs one row per hour and node."""
    return last_used_at is None or now - last_used_at >= TOLD_TO


def _numbers(quotas: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in quotas.items() if isinstance(value, int)}


def _within(address: str, networks: tuple[str, ...]) -> bool:
    try:
        host = ip_address(address)
    except ValueError:
        return False
    # A socket for both families tells IPv4 callers as IPv6 addresses.
    host = getattr(host, "ipv4_mapped", None) or host
    return any(host in ip_network(network, strict=False) for network in networks)
