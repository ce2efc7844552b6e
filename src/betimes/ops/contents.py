"""Payloads and results that lie in their rows, sealed where the operator wants it.

What is sealed says so by its first bytes and names the version of the tenant's data key. It is
bound to the tenant and not to its row: a definition is copied into its history, a payload into the
run that repeats it, and neither has to be opened for that. Whatever is not sealed stays as it is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from betimes.domain.errors import Invalid, Locked
from betimes.domain.ids import TenantId
from betimes.domain.job import Definition, Job
from betimes.domain.run import Run
from betimes.ops.desk import Desk
from betimes.ops.vault import Vault
from betimes.store.jobs import Revision
from betimes.store.pool import Connection, Lane
from betimes.store.seal import SALT_BYTES, place_of, seal, unseal
from betimes.store.vault import WrappedKey, mark_inline, read_data_keys

MARK = b"\x00betimes\x01"
"""No JSON begins like this, and what a user gives may not."""
VERSION_BYTES = 4
PLACE = "inline"
KEYS_SECONDS = 5.0
TENANTS_MAX = 10_000


def is_sealed(content: bytes | None) -> bool:
    """Whether somebody has sealed it."""
    return content is not None and content.startswith(MARK)


class Keys:
    """The data keys of one tenant, as they were read; opens, and seals with the newest."""

    def __init__(
        self,
        vault: Vault,
        tenant: TenantId,
        keys: Sequence[WrappedKey],
        entropy: Callable[[int], bytes],
    ) -> None:
        self._vault = vault
        self._tenant = tenant
        self._wrapped = {one.version: one for one in keys}
        self._open: dict[int, bytes] = {}
        self._newest = max(self._wrapped, default=0)
        self._entropy = entropy

    def seal(self, content: bytes | None) -> bytes | None:
        """Sealed under the newest key; what is sealed already, and nothing, stays as it is."""
        if content is None or is_sealed(content):
            return content
        sealed = seal(
            self._key(self._newest),
            self._place(self._newest),
            content,
            salt=self._entropy(SALT_BYTES),
        )
        return MARK + self._newest.to_bytes(VERSION_BYTES) + sealed

    def open(self, content: bytes | None) -> bytes | None:
        """What was sealed; anything else as it is."""
        if content is None or not is_sealed(content):
            return content
        begin = len(MARK) + VERSION_BYTES
        version = int.from_bytes(content[len(MARK) : begin])
        return unseal(self._key(version), self._place(version), content[begin:])

    def _key(self, version: int) -> bytes:
        if version not in self._open:
            wrapped = self._wrapped.get(version)
            if wrapped is None:
                raise Locked("the key that this was sealed under is gone")
            self._open[version] = self._vault.unwrapped(self._tenant, wrapped)
        return self._open[version]

    def _place(self, version: int) -> bytes:
        return place_of(self._tenant, PLACE, version)


async def opening_keys(desk: Desk, connection: Connection, tenant: TenantId) -> Keys:
    """What opens for a tenant."""
    if desk.vault is None:
        raise Locked("this node has no master key to open payloads with")
    return Keys(desk.vault, tenant, await read_data_keys(connection, tenant), desk.entropy)


async def sealing_keys(desk: Desk, connection: Connection, tenant: TenantId) -> Keys:
    """What seals for a tenant; the first data key is made when there is none.

    A key that seals what lies in rows is kept as long as they may: nobody looks for them all.
    """
    if desk.vault is None:
        raise Locked("payloads are to be sealed, and this node has no master key")
    keys = await read_data_keys(connection, tenant)
    if not keys:
        await desk.vault.add_key(connection, tenant)
        keys = await read_data_keys(connection, tenant)
    if not keys[0].inline:
        await mark_inline(connection, tenant, keys[0].version)
    return Keys(desk.vault, tenant, keys, desk.entropy)


async def sealed(
    desk: Desk, connection: Connection, tenant: TenantId, contents: Sequence[bytes | None]
) -> Sequence[bytes | None]:
    """Contents as they go into their rows."""
    if not desk.seals or all(one is None or is_sealed(one) for one in contents):
        return contents
    keys = await sealing_keys(desk, connection, tenant)
    return [keys.seal(one) for one in contents]


async def sealed_one(
    desk: Desk, connection: Connection, tenant: TenantId, content: bytes | None
) -> bytes | None:
    """The same for one."""
    return (await sealed(desk, connection, tenant, [content]))[0]


async def sealed_definition(
    desk: Desk, connection: Connection, tenant: TenantId, definition: Definition
) -> Definition:
    """A definition as it goes into its row."""
    payload = await sealed_one(desk, connection, tenant, definition.payload)
    return definition if payload is definition.payload else replace(definition, payload=payload)


async def sealed_for_later(desk: Desk, tenant: TenantId, content: bytes | None) -> bytes | None:
    """Content as it is written down for somebody who uses it in another transaction."""
    if content is None or not desk.seals:
        return content

    async def work(connection: Connection) -> bytes | None:
        return await sealed_one(desk, connection, tenant, content)

    return await desk.transact(work, tenant=tenant)


async def opened_definition(desk: Desk, tenant: TenantId, definition: Definition) -> Definition:
    """A definition with its payload as it was given."""
    if not is_sealed(definition.payload):
        return definition

    async def work(connection: Connection) -> Definition:
        (payload,) = await open_bytes(desk, connection, tenant, [definition.payload])
        return replace(definition, payload=payload)

    return await desk.transact(work, tenant=tenant)


async def open_runs(
    desk: Desk, connection: Connection, tenant: TenantId, runs: Sequence[Run]
) -> list[Run]:
    """Runs with what they were given and gave, open."""
    keys = await _needed(desk, connection, tenant, ((one.payload, one.result) for one in runs))
    if keys is None:
        return list(runs)
    return [
        replace(one, payload=keys.open(one.payload), result=keys.open(one.result)) for one in runs
    ]


async def open_jobs(
    desk: Desk, connection: Connection, tenant: TenantId, jobs: Sequence[Job]
) -> list[Job]:
    """Jobs with their payloads open."""
    keys = await _needed(desk, connection, tenant, ((one.definition.payload,) for one in jobs))
    if keys is None:
        return list(jobs)
    return [
        replace(one, definition=replace(one.definition, payload=keys.open(one.definition.payload)))
        for one in jobs
    ]


async def open_revisions(
    desk: Desk, connection: Connection, tenant: TenantId, revisions: Sequence[Revision]
) -> list[Revision]:
    """The same for what jobs were before."""
    payloads = [one.definition.payload for one in revisions]
    opened = await open_bytes(desk, connection, tenant, payloads)
    return [
        replace(one, definition=replace(one.definition, payload=payload))
        for one, payload in zip(revisions, opened, strict=True)
    ]


async def open_bytes(
    desk: Desk, connection: Connection, tenant: TenantId, contents: Sequence[bytes | None]
) -> Sequence[bytes | None]:
    """Contents as they were given."""
    keys = await _needed(desk, connection, tenant, [contents])
    return contents if keys is None else [keys.open(one) for one in contents]


async def _needed(
    desk: Desk,
    connection: Connection,
    tenant: TenantId,
    contents: Iterable[Sequence[bytes | None]],
) -> Keys | None:
    """Keys, if anything is sealed at all: otherwise nobody is asked for any."""
    if any(is_sealed(one) for some in contents for one in some):
        return await opening_keys(desk, connection, tenant)
    return None


class Contents:
    """Keys for whoever works on many runs of many tenants; remembered for a few seconds.

    One that was replaced meanwhile still opens what it sealed: such keys stay with their tenant.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[TenantId, tuple[float, Keys]] = {}

    @property
    def seals(self) -> bool:
        """Whether results are to be sealed."""
        return self._desk.seals

    async def keys(self, tenant: TenantId) -> Keys | None:
        """What opens and seals for a tenant; None on a node without a master key."""
        desk, now = self._desk, self._desk.clock.monotonic()
        known = self._known.get(tenant)
        if known is not None and now < known[0]:
            return known[1]
        if desk.vault is None:
            return None

        async def work(connection: Connection) -> Keys:
            read = sealing_keys if desk.seals else opening_keys
            return await read(desk, connection, tenant)

        keys = await desk.database.transact(work, lane=Lane.ENGINE, repeatable=True)
        if len(self._known) >= TENANTS_MAX:
            self._known.clear()
        self._known[tenant] = now + KEYS_SECONDS, keys
        return keys


def check_unmarked(content: bytes | None) -> None:
    """Nobody may give us something that looks as if we had sealed it."""
    if is_sealed(content):
        raise Invalid("expected a payload that does not begin like a sealed one")
