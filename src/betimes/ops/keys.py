"""API keys: making, rotating, revoking; the first one of all."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from ipaddress import ip_network

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import TenantId
from betimes.domain.key_text import ENTROPY_BYTES, KINDS, KeyText, digest_of, make_key
from betimes.domain.scopes import OF_KIND, Scope
from betimes.ops.checks import check_instant, check_queue, check_text
from betimes.ops.desk import Desk
from betimes.ops.reach import ADMIN, Caller, Reach, check_reach
from betimes.store import keys as rows
from betimes.store.keys import ApiKey
from betimes.store.pool import Connection
from betimes.wire.base import shown_duration

__all__ = [
    "ADMIN",
    "ApiKey",
    "Caller",
    "KeyMaker",
    "MadeKey",
    "NewKey",
    "change_key",
    "get_key",
    "list_keys",
    "revoke_key",
]

NAME_LENGTH_MAX = 200
BOUND_MAX = 100
BOUND_SCOPES = OF_KIND["wk"]
OVERLAP_MAX = timedelta(days=30)
FIRST_NAME = "first administrator"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key as somebody asks for it; without scopes it may do what its kind may."""

    name: str
    kind: str = "sk"
    scopes: Sequence[str] = ()
    queues: Sequence[str] | None = None
    networks: Sequence[str] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeKey:
    """A key with its secret text, which is shown this once."""

    key: ApiKey
    text: str


def check_new_key(new: NewKey, *, by: Caller | None) -> None:
    """A key nobody may make for more than they may do themselves."""
    check_text(new.name, what="a name", most=NAME_LENGTH_MAX, pointer="/name")
    if new.kind not in KINDS:
        raise Invalid(
            f"expected a kind out of {', '.join(KINDS)}, got {new.kind!r}", pointer="/kind"
        )
    wanted = scopes_of(new)
    excess = sorted(wanted - OF_KIND[new.kind])
    if excess:
        raise Invalid(
            f"a key of kind {new.kind} cannot have the scope {excess[0]}", pointer="/scopes"
        )
    check_bindings(new.queues, new.networks)
    check_bound_scopes(new.queues, wanted)
    if new.expires_at is not None:
        check_instant(new.expires_at, pointer="/expires_at")
    if by is not None:
        check_reach(by, after=reach_of_new(new, wanted))


def check_bindings(queues: Sequence[str] | None, networks: Sequence[str] | None) -> None:
    """Queues and networks a key may be bound to."""
    for queue in queues or ():
        check_queue(queue)
    for place, network in enumerate(networks or ()):
        try:
            ip_network(network)
        except ValueError:
            raise Invalid(
                f"expected a network such as 10.0.0.0/8, got {network[:50]!r}",
                pointer=f"/ip_allow/{place}",
            ) from None
    if max(len(queues or ()), len(networks or ())) > BOUND_MAX:
        raise Invalid(f"expected at most {BOUND_MAX} queues and networks")


def check_bound_scopes(queues: Sequence[str] | None, scopes: Iterable[str]) -> None:
    """A binding that most operations would not hear of must not promise anything."""
    excess = sorted(set(scopes) - BOUND_SCOPES)
    if queues is not None and excess:
        raise Invalid(
            f"a key that is bound to queues leases from them; it cannot have {excess[0]}",
            pointer="/queues",
        )


def reach_of(key: ApiKey) -> Reach:
    """How far a key gets as it is stored."""
    return Reach(
        kind=key.kind,
        scopes=frozenset(key.scopes),
        networks=key.networks,
        queues=key.queues,
        until=key.expires_at,
    )


def reach_of_new(new: NewKey, scopes: frozenset[str]) -> Reach:
    """How far a key will get that somebody asks for."""
    return Reach(
        kind=new.kind,
        scopes=scopes,
        networks=new.networks,
        queues=new.queues,
        until=new.expires_at,
    )


def scopes_of(new: NewKey) -> frozenset[str]:
    """The scopes a key will have."""
    known = {scope.value for scope in Scope}
    for place, scope in enumerate(new.scopes):
        if scope not in known:
            raise Invalid(f"there is no scope {scope[:50]!r}", pointer=f"/scopes/{place}")
    return frozenset(new.scopes) or frozenset(OF_KIND[new.kind])


class KeyMaker:
    """Makes keys under the pepper of this service."""

    def __init__(self, *, pepper: bytes) -> None:
        self._pepper = pepper

    async def create(
        self,
        desk: Desk,
        tenant: TenantId,
        new: NewKey,
        *,
        by: Caller | None,
        replaces: str | None = None,
    ) -> MadeKey:
        """A new key; its text is in the answer and nowhere else."""
        check_new_key(new, by=by)
        text = make_key(new.kind, desk.entropy(ENTROPY_BYTES))
        key = ApiKey(
            id=text.id,
            tenant=tenant,
            name=new.name,
            kind=new.kind,
            scopes=tuple(sorted(scopes_of(new))),
            queues=None if new.queues is None else tuple(new.queues),
            networks=None if new.networks is None else tuple(new.networks),
            created_at=desk.clock.now(),
            created_by=None if by is None else by.key,
            expires_at=new.expires_at,
            replaces=replaces,
        )

        async def work(connection: Connection) -> None:
            await rows.insert_key(connection, key, self.digest(text))

        await desk.transact(work, tenant=tenant)
        return MadeKey(key=key, text=str(text))

    async def rotate(
        self, desk: Desk, tenant: TenantId, key: str, *, overlap: timedelta, by: Caller
    ) -> MadeKey:
        """A new key that may do the same; the old one works until the overlap has passed."""
        if not timedelta(0) <= overlap <= OVERLAP_MAX:
            raise Invalid(
                f"expected an overlap of at most 30 days, got {shown_duration(overlap)}",
                pointer="/overlap",
            )

        async def work(connection: Connection) -> MadeKey:
            old = await _held(connection, tenant, key)
            if old.revoked_at is not None:
                raise Invalid(
                    "a revoked key cannot be rotated; make a new one", code="invalid_state"
                )
            check_reach(by, before=reach_of(old))
            _check_alive(desk, old)
            end = desk.clock.now() + overlap
            made = await self.create(
                desk.inside(connection, desk.hints, at=desk.at),
                tenant,
                NewKey(
                    name=old.name,
                    kind=old.kind,
                    scopes=old.scopes,
                    queues=old.queues,
                    networks=old.networks,
                    expires_at=old.expires_at,
                ),
                by=by,
                replaces=old.id,
            )
            expires_at = end if old.expires_at is None else min(end, old.expires_at)
            await _change(connection, replace(old, expires_at=expires_at))
            return made

        return await desk.transact(work, tenant=tenant)

    async def bootstrap(self, desk: Desk, tenant: TenantId) -> str | None:
        """The first administrator's key, if there is none yet: its text."""

        async def work(connection: Connection) -> int:
            return await rows.count_admins(connection)

        if await desk.transact(work, tenant=None):
            return None
        return await self.first(desk, tenant)

    async def first(self, desk: Desk, tenant: TenantId) -> str:
        """An administrator's key, whoever else has one."""
        made = await self.create(desk, tenant, NewKey(name=FIRST_NAME, kind="ak"), by=None)
        return made.text

    def digest(self, text: KeyText) -> bytes:
        """What is kept of its secret."""
        return digest_of(text.secret, self._pepper)


async def get_key(desk: Desk, tenant: TenantId, key: str) -> ApiKey:
    """One key of the tenant."""

    async def work(connection: Connection) -> ApiKey:
        found = await rows.read_key(connection, tenant, key)
        if found is None:
            raise no_such_key(key)
        return found

    return await desk.transact(work, tenant=tenant)


async def list_keys(
    desk: Desk, tenant: TenantId, *, after: tuple[datetime, str], most: int
) -> list[ApiKey]:
    """A page of the tenant's keys."""

    async def work(connection: Connection) -> list[ApiKey]:
        return await rows.list_keys(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def change_key(
    desk: Desk,
    tenant: TenantId,
    key: str,
    *,
    name: str | None = None,
    queues: Sequence[str] | None = None,
    networks: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    by: Caller,
) -> ApiKey:
    """Rename a key or bind it otherwise; what is None stays."""
    if name is not None:
        check_text(name, what="a name", most=NAME_LENGTH_MAX, pointer="/name")
    if expires_at is not None:
        check_instant(expires_at, pointer="/expires_at")
    check_bindings(queues, networks)

    async def work(connection: Connection) -> ApiKey:
        old = await _held(connection, tenant, key)
        check_bound_scopes(queues, old.scopes)
        changed = replace(
            old,
            name=old.name if name is None else name,
            queues=old.queues if queues is None else tuple(queues),
            networks=old.networks if networks is None else tuple(networks),
            expires_at=old.expires_at if expires_at is None else expires_at,
        )
        check_reach(by, before=reach_of(old), after=reach_of(changed))
        if expires_at is not None:
            _check_alive(desk, old)
        await _change(connection, changed)
        return changed

    return await desk.transact(work, tenant=tenant)


async def _held(connection: Connection, tenant: TenantId, key: str) -> ApiKey:
    """A key that nobody else changes meanwhile.

    Otherwise a key that keeps renaming itself would undo what an administrator takes from it.
    """
    found = await rows.lock_key(connection, tenant, key)
    if found is None:
        raise no_such_key(key)
    return found


def _check_alive(desk: Desk, key: ApiKey) -> None:
    """An expired key stays so: who kept its text was told that it is worth nothing."""
    if key.expires_at is not None and key.expires_at <= desk.clock.now():
        raise Invalid("an expired key stays so; make a new one", code="invalid_state")


async def revoke_key(desk: Desk, tenant: TenantId, key: ApiKey, *, by: Caller) -> None:
    """Revoke a key at once."""
    if key.id != by.key:
        check_reach(by, before=reach_of(key))

    async def work(connection: Connection) -> None:
        if not await rows.revoke_key(connection, tenant, key.id, desk.clock.now()):
            raise no_such_key(key.id)

    await desk.transact(work, tenant=tenant)


async def _change(connection: Connection, key: ApiKey) -> None:
    if not await rows.change_key(connection, key):
        raise Invalid("a revoked key stays as it is", code="invalid_state")


def no_such_key(key: str) -> NotFound:
    """The same sentence for what is missing and for what belongs to somebody else."""
    return NotFound(f"there is no key {key[:50]!r}")
