"""Secrets: sealed in the database, open to deliveries, erased with their tenant."""

import os

import pytest

from betimes.domain.errors import Invalid, Locked, NotFound, TooLarge
from betimes.janitor.rotate import Rotator
from betimes.ops.desk import Desk
from betimes.ops.rotation import reseal_some, rewrap_keys, rotate_key
from betimes.ops.secrets import (
    delete_secret,
    get_secret,
    list_secrets,
    open_secrets,
    put_secret,
)
from betimes.ops.vault import MasterKey, Vault
from betimes.store import erase
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from ops_kit import HOUR, MASTER, OTHER, TENANT, fetch, make_desk

NEW_MASTER = MasterKey(bytes(range(100, 132)))
CANARY = b"canary-7d1f0c55"


@pytest.fixture
def desk(database: Database, clock: ManualClock) -> Desk:
    return make_desk(database, clock)


def with_masters(desk: Desk, clock: ManualClock, *masters: MasterKey) -> Desk:
    return make_desk(
        desk.database, clock, vault=Vault(masters=masters, clock=clock, entropy=os.urandom)
    )


async def put(desk: Desk, name: str, value: bytes, *, keep: int = 2) -> int:
    written = await put_secret(desk, TENANT, name, value, keep=keep, by="key1", origins=["*"])
    return written.secret.version


async def opened(desk: Desk, name: str) -> list[bytes]:
    found = (await open_secrets(desk, TENANT, [name])).get(name)
    return [] if found is None else list(found.values)


async def test_a_value_is_kept_in_versions(desk: Desk) -> None:
    """The newest first; as many as were asked for stay; the same value again makes none."""
    assert [await put(desk, "api", value) for value in (b"one", b"two", b"two", b"three")] == [
        *(1, 2, 2, 3)
    ]
    assert await opened(desk, "api") == [b"three", b"two"]
    assert [one.version for one in await get_secret(desk, TENANT, "api")] == [3, 2]
    (shown,) = await list_secrets(desk, TENANT, after="", most=10)
    assert (shown.name, shown.version, shown.versions, shown.created_by) == ("api", 3, 2, "key1")
    await put(desk, "api", b"four", keep=1)
    assert await opened(desk, "api") == [b"four"]


async def test_the_database_does_not_know_what_it_keeps(desk: Desk) -> None:
    """Neither the secret nor the key that seals it."""
    await put(desk, "api", CANARY)
    for table in ("secrets", "data_keys"):
        rows = await fetch(desk.database, f"SELECT t::text AS row FROM betimes.{table} AS t")
        assert len(rows) == 1
        assert CANARY.hex() not in rows[0]["row"]
        assert CANARY.decode() not in rows[0]["row"]


async def test_tenants_do_not_meet(desk: Desk) -> None:
    """A name of another tenant is no name at all, and its rows open for nobody else."""
    await put(desk, "api", CANARY)
    assert await open_secrets(desk, OTHER, ["api"]) == {}
    assert await list_secrets(desk, OTHER, after="", most=10) == []
    with pytest.raises(NotFound):
        await delete_secret(desk, OTHER, "api")
    await put(desk, "second", b"value")
    await fetch(
        desk.database,
        "UPDATE betimes.secrets SET sealed = other.sealed FROM betimes.secrets AS other "
        "WHERE secrets.name = 'second' AND other.name = 'api'",
    )
    with pytest.raises(Locked):
        await opened(desk, "second")


async def test_a_deleted_secret_is_gone_at_once(desk: Desk) -> None:
    """One version, or all of them."""
    for value in (b"one", b"two"):
        await put(desk, "api", value)
    await delete_secret(desk, TENANT, "api", version=2)
    assert await opened(desk, "api") == [b"one"]
    with pytest.raises(NotFound):
        await delete_secret(desk, TENANT, "api", version=2)
    await delete_secret(desk, TENANT, "api")
    assert await opened(desk, "api") == []


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "a" * 129, "{{secret:x}}", "é"])
async def test_a_name_can_stand_in_a_reference(desk: Desk, name: str) -> None:
    """Or it is none."""
    with pytest.raises(Invalid):
        await put(desk, name, b"value")


async def test_what_is_refused_is_not_repeated(desk: Desk) -> None:
    """A sentence about a value says how long it was and not what."""
    with pytest.raises(TooLarge) as refused:
        await put(desk, "api", CANARY * 10_000)
    assert CANARY.decode() not in str(refused.value)


async def test_without_its_master_key_nothing_opens(desk: Desk, clock: ManualClock) -> None:
    """A node with other keys says which one is missing, by its digest."""
    await put(desk, "api", CANARY)
    with pytest.raises(Locked, match=MASTER.id.hex()):
        await opened(with_masters(desk, clock, NEW_MASTER), "api")
    with pytest.raises(Locked):
        await opened(make_desk(desk.database, clock, vault=None), "api")


async def test_a_master_key_is_replaced_by_wrapping_anew(desk: Desk, clock: ManualClock) -> None:
    """Secrets stay as they are; the old master key opens nothing afterwards."""
    await put(desk, "api", CANARY)
    before = await fetch(desk.database, "SELECT sealed FROM betimes.secrets")
    both = with_masters(desk, clock, NEW_MASTER, MASTER)
    assert await rewrap_keys(both) == 1
    assert await rewrap_keys(both) == 0
    assert await fetch(desk.database, "SELECT sealed FROM betimes.secrets") == before
    assert await opened(with_masters(desk, clock, NEW_MASTER), "api") == [CANARY]
    with pytest.raises(Locked):
        await opened(desk, "api")
    (row,) = await fetch(desk.database, "SELECT master_check FROM betimes.cluster")
    assert row["master_check"] == NEW_MASTER.id


async def test_a_data_key_is_replaced_and_what_it_sealed_follows(
    desk: Desk, clock: ManualClock
) -> None:
    """The old one is forgotten when nothing needs it and nobody can be using it any more."""
    assert await rotate_key(desk, TENANT) == 0, "a tenant without secrets needs no key"
    for number in range(3):
        await put(desk, f"s{number}", CANARY)
    assert await rotate_key(desk, TENANT) == 2
    assert await reseal_some(desk, TENANT) == 3
    versions = await fetch(desk.database, "SELECT DISTINCT key_version FROM betimes.secrets")
    assert [row["key_version"] for row in versions] == [2]
    assert await reseal_some(desk, TENANT) == 0
    assert await keys_of(desk) == [1, 2]
    clock.advance(2 * HOUR)
    assert await reseal_some(desk, TENANT) == 0
    assert await keys_of(desk) == [2]
    assert await opened(desk, "s1") == [CANARY]


async def keys_of(desk: Desk) -> list[int]:
    rows = await fetch(desk.database, "SELECT version FROM betimes.data_keys ORDER BY version")
    return [row["version"] for row in rows]


async def test_the_janitor_replaces_old_keys(desk: Desk, clock: ManualClock) -> None:
    """By their age."""
    await put(desk, "api", CANARY)
    rotator = Rotator(
        desk=desk, clock=clock, telemetry=Telemetry(clock=clock), older_than=24 * HOUR
    )
    assert await rotator.tick() == 0
    clock.advance(25 * HOUR)
    assert await rotator.tick() == 1
    clock.advance(2 * HOUR)
    assert await rotator.tick() == 0
    assert await keys_of(desk) == [2]
    assert await opened(desk, "api") == [CANARY]


async def test_an_undone_write_leaves_no_key_behind(desk: Desk) -> None:
    """The first key of a tenant is made in the transaction of what it seals."""

    class Undone(Exception):
        pass

    async def work(connection: Connection) -> None:
        inner = desk.inside(connection, desk.hints)
        await put_secret(inner, TENANT, "api", CANARY, keep=1, by=None, origins=["*"])
        raise Undone

    with pytest.raises(Undone):
        await desk.transact(work, tenant=TENANT)
    assert await keys_of(desk) == []
    await put(desk, "api", b"value")
    assert await opened(desk, "api") == [b"value"]


async def test_a_tenant_is_erased_by_forgetting_its_keys(desk: Desk) -> None:
    """First of all: a copy of its rows opens for nobody from then on."""
    await put(desk, "api", CANARY)
    copied = await fetch(desk.database, "SELECT * FROM betimes.secrets")
    assert erase.PARTS[0] == "vault"

    async def work(connection: Connection) -> int:
        return await erase.erase_some(connection, TENANT, "vault")

    assert await desk.transact(work, tenant=None) == 2
    await put(desk, "other", b"value")
    row = copied[0]

    async def restore(connection: Connection) -> None:
        await connection.execute(
            "INSERT INTO betimes.secrets "
            "(tenant_id, name, version, key_version, created_at, sealed, origins) "
            "VALUES ($1, $2, $3, $4, $5, $6, ARRAY['*'])",
            *(row[name] for name in ("tenant_id", "name", "version", "key_version")),
            row["created_at"],
            row["sealed"],
        )

    await desk.transact(restore, tenant=None)
    with pytest.raises(Locked):
        await opened(desk, "api")
