"""Devices without a browser of their own: they show a code, a person answers it elsewhere."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Forbidden, NotFound, Overloaded, Refused
from betimes.domain.ids import TenantId
from betimes.domain.scopes import OF_KIND
from betimes.domain.secrets import (
    TOKEN_BYTES,
    USER_CODE_BYTES,
    read_user_code,
    token_digest,
    token_text,
    user_code,
)
from betimes.ops.checks import check_text
from betimes.ops.desk import Desk
from betimes.ops.keys import KeyMaker, MadeKey, NewKey
from betimes.ops.reach import Caller, Reach, check_reach, lasts_until
from betimes.store import members as rows
from betimes.store.members import Grant
from betimes.store.pool import Connection

EXPIRES_AFTER = timedelta(minutes=10)
INTERVAL = timedelta(seconds=5)
KEY_FOR = timedelta(days=90)
KIND = "sk"
DEVICE = "device"
OPEN, GRANTED, DENIED, REDEEMED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a device keeps, what it shows, and how often it may ask."""

    device_code: str
    user_code: str
    expires_in: timedelta = EXPIRES_AFTER
    interval: timedelta = INTERVAL


class NotYet(Refused):
    """No key for the device now; the code says whether to go on asking."""


class Devices:
    """Grants for devices."""

    def __init__(self, *, desk: Desk, keys: KeyMaker, clock: Clock, pepper: bytes) -> None:
        self._desk = desk
        self._keys = keys
        self._clock = clock
        self._pepper = pepper

    async def ask(self, name: str) -> Asking:
        """Begin: two codes, one for the device and one for a person."""
        check_text(name, what="a name", most=200, pointer="/name")
        device, shown = token_text(self._desk.entropy(TOKEN_BYTES)), self._user_code()
        now = self._clock.now()
        kept = await rows.insert_grant(
            self._desk.database,
            self._digest(device),
            user_code=shown,
            name=name,
            now=now,
            expires_at=now + EXPIRES_AFTER,
        )
        if not kept:
            raise Overloaded("too many devices wait for an answer")
        return Asking(device_code=device, user_code=shown)

    def _user_code(self) -> str:
        return user_code(self._desk.entropy(USER_CODE_BYTES))

    async def answer(
        self, desk: Desk, tenant: TenantId, code: str, *, granted: bool, by: Caller
    ) -> str:
        """Say yes or no; what is granted is at most what the person may do. The device's name."""
        if by.via == "key" and by.kind not in ("sk", "ak"):
            raise Forbidden(f"a key of kind {by.kind} cannot let a device in")
        scopes = sorted(by.scopes & OF_KIND[KIND])
        if granted and not scopes:  # a key without scopes of its own has all of its kind
            raise Forbidden("the caller may do nothing that a device could be let do")
        shown, now = read_user_code(code), self._clock.now()
        # The device's key will be bound to nothing, and end no later than the caller's.
        until = min(now + KEY_FOR, lasts_until(by) or now + KEY_FOR)
        check_reach(by, after=Reach(kind=KIND, scopes=frozenset(scopes), until=until))

        async def work(connection: Connection) -> str:
            name = await rows.answer_grant(
                connection,
                shown,
                granted=granted,
                tenant=tenant,
                scopes=scopes,
                by=by.key,
                key_until=until,
                now=now,
            )
            if name is None:
                raise NotFound("no device waits with this code")
            return name

        return await desk.transact(work, tenant=None)

    async def poll(self, device_code: str) -> Grant:
        """What became of the wish; asking too often is refused.

        Raises:
            NotYet: nobody has answered, somebody said no, or it is too late.

        """
        now = self._clock.now()

        async def work(connection: Connection) -> Grant | None:
            return await rows.poll_grant(connection, self._digest(device_code), now=now)

        grant = await self._desk.transact(work, tenant=None)
        _check(grant, now)
        if grant is None:  # never: the check has refused it
            raise NotFound("no device waits with this code")
        return grant

    async def redeem(self, desk: Desk, device_code: str, grant: Grant) -> MadeKey:
        """The key of a device that was let in, made this once."""
        if grant.tenant is None:
            raise NotYet("the device code is unknown or too old", code="expired_token")

        async def work(connection: Connection) -> None:
            if not await rows.redeem_grant(connection, self._digest(device_code)):
                raise NotYet("the device code was used already", code="expired_token")

        await desk.transact(work, tenant=None)
        new = NewKey(
            name=grant.name,
            kind=KIND,
            scopes=grant.scopes,
            expires_at=grant.key_until or self._clock.now() + KEY_FOR,
        )
        return await self._keys.create(desk, grant.tenant, new, by=None)

    def _digest(self, device_code: str) -> bytes:
        return token_digest(device_code, self._pepper, purpose=DEVICE)


def _check(grant: Grant | None, now: datetime) -> None:
    if grant is None or grant.expires_at <= now or grant.state == REDEEMED:
        raise NotYet("the device code is unknown, used up or too old", code="expired_token")
    if grant.state == DENIED:
        raise NotYet("somebody has refused the device", code="access_denied")
    if grant.state == OPEN:
        if grant.polled_at is not None and now - grant.polled_at < INTERVAL:
            raise NotYet("expected to be asked no more often than agreed", code="slow_down")
        raise NotYet("nobody has answered the device yet", code="authorization_pending")
