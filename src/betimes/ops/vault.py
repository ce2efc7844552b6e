"""The vault: what opens and seals for tenants, and how its keys are replaced.

    master key   given to the node, first the one in use, after it the ones it replaces
    data key     of a tenant, in versions; kept wrapped, open only while it is used

Replacing a master key wraps the data keys anew and touches nothing else. Replacing a data key makes
a new version; what is sealed under older ones is sealed anew piece by piece, and a version under
which nothing is left is forgotten.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b

from betimes.domain.clock import Clock
from betimes.domain.errors import Locked
from betimes.domain.ids import TenantId
from betimes.store import vault as rows
from betimes.store.pool import Connection
from betimes.store.seal import KEY_BYTES, SALT_BYTES, place_of, seal, unseal
from betimes.store.vault import WrappedKey

REPLACED_FOR = timedelta(hours=1)
"""A data key is forgotten no sooner after it was replaced: somebody may still be using it."""


@dataclass(frozen=True, slots=True)
class MasterKey:
    """A key that wraps keys."""

    key: bytes

    @property
    def id(self) -> bytes:
        """Which one it is, without telling it."""
        return blake2b(self.key, digest_size=8, person=b"betimes-master").digest()

    def __repr__(self) -> str:
        return f"MasterKey({self.id.hex()})"


@dataclass(frozen=True, slots=True)
class Sealed:
    """Sealed bytes, and the version of the tenant's key they are sealed under."""

    key_version: int
    content: bytes


class Vault:
    """Seals and opens. Data keys are read each time: one that is deleted opens nothing any more."""

    def __init__(
        self, *, masters: Sequence[MasterKey], clock: Clock, entropy: Callable[[int], bytes]
    ) -> None:
        self._masters = {one.id: one for one in masters}
        self._master = masters[0]
        self._clock = clock
        self._entropy = entropy

    @property
    def master(self) -> MasterKey:
        """The master key in use."""
        return self._master

    def knows(self, master: bytes) -> bool:
        """Whether a master key is among ours."""
        return master in self._masters

    async def seal(
        self, connection: Connection, tenant: TenantId, place: Sequence[object], content: bytes
    ) -> Sealed:
        """Seal for a tenant; its first data key is made when there is none."""
        keys = await rows.read_data_keys(connection, tenant)
        if not keys:
            await self.add_key(connection, tenant)
            keys = await rows.read_data_keys(connection, tenant)
        newest = keys[0]
        return Sealed(
            newest.version,
            seal(
                self.unwrapped(tenant, newest),
                place_of(tenant, *place, newest.version),
                content,
                salt=self._entropy(SALT_BYTES),
            ),
        )

    async def open(
        self, connection: Connection, tenant: TenantId, place: Sequence[object], sealed: Sealed
    ) -> bytes:
        """What was sealed for a tenant and a place."""
        return (await self.keyring(connection, tenant)).open(place, sealed)

    async def keyring(self, connection: Connection, tenant: TenantId) -> "Keyring":
        """The keys of a tenant as they are now, for who opens something later or much at once."""
        return Keyring(self, tenant, await rows.read_data_keys(connection, tenant))

    async def add_key(self, connection: Connection, tenant: TenantId) -> int:
        """Make a new data key, which seals from now on; its version."""
        wrapped = await rows.read_data_keys(connection, tenant)
        version = 1 + max((one.version for one in wrapped), default=0)
        key = WrappedKey(
            version=version,
            master=self._master.id,
            wrapped=self._wrapped(tenant, version, self._entropy(KEY_BYTES)),
            created_at=self._clock.now(),
        )
        # Of two at once one stays, and both use it.
        await rows.insert_data_key(connection, tenant, key)
        return version

    async def rewrap(self, connection: Connection, *, most: int) -> int:
        """Wrap some data keys under the master key in use; how many were looked at."""
        found = await rows.under_other_masters(connection, self._master.id, most=most)
        for tenant, key in found:
            content = self._wrapped(tenant, key.version, self.unwrapped(tenant, key))
            await rows.rewrap(connection, tenant, key, master=self._master.id, wrapped=content)
        return len(found)

    async def newest(self, connection: Connection, tenant: TenantId) -> int:
        """The version that seals now; 0 when there is none."""
        keys = await rows.read_data_keys(connection, tenant)
        return keys[0].version if keys else 0

    def _wrapped(self, tenant: TenantId, version: int, key: bytes) -> bytes:
        place = _place_of_key(tenant, version)
        return seal(self._master.key, place, key, salt=self._entropy(SALT_BYTES))

    def unwrapped(self, tenant: TenantId, key: WrappedKey) -> bytes:
        """A data key, open."""
        master = self._masters.get(key.master)
        if master is None:
            raise Locked(
                f"expected the master key {key.master.hex()}, "
                f"got {', '.join(sorted(one.hex() for one in self._masters))}"
            )
        return unseal(master.key, _place_of_key(tenant, key.version), key.wrapped)


class Keyring:
    """The data keys of one tenant, wrapped until one is needed."""

    def __init__(self, vault: Vault, tenant: TenantId, keys: Sequence[WrappedKey]) -> None:
        self._vault = vault
        self._tenant = tenant
        self._keys = {one.version: one for one in keys}

    def open(self, place: Sequence[object], sealed: Sealed) -> bytes:
        """What was sealed for the tenant and a place."""
        wrapped = self._keys.get(sealed.key_version)
        if wrapped is None:
            raise Locked("the key that this was sealed under is gone")
        where = place_of(self._tenant, *place, sealed.key_version)
        return unseal(self._vault.unwrapped(self._tenant, wrapped), where, sealed.content)


def _place_of_key(tenant: TenantId, version: int) -> bytes:
    return place_of(tenant, "data_keys", version)
