"""Secrets: written by people, read by deliveries, shown to nobody."""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from betimes.domain.errors import Conflict, Invalid, Locked, NotFound, OverQuota, TooLarge
from betimes.domain.ids import TenantId
from betimes.domain.origins import OpenSecret, read_origins
from betimes.ops.desk import Desk
from betimes.ops.vault import Sealed, Vault
from betimes.store import secrets as rows
from betimes.store.pool import Connection
from betimes.store.secrets import SecretName, SecretVersion

__all__ = [
    "SecretName",
    "SecretVersion",
    "Written",
    "bind_secret",
    "delete_secret",
    "get_secret",
    "list_secrets",
    "name_of",
    "open_secrets",
    "put_secret",
    "read_bindings",
    "vault_of",
]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
VALUE_BYTES_MAX = 65_536
SECRETS_MAX = 10_000
KEEP_MAX = 10
"""Most versions of one secret."""


@dataclass(frozen=True, slots=True)
class Written:
    """A secret after it was written; a value that it had already makes no new version."""

    secret: SecretName
    created: bool
    changed: bool


def check_secret_name(name: str, *, pointer: str = "/name") -> None:
    """A name that can stand in a reference."""
    if not NAME.fullmatch(name):
        raise Invalid(
            "expected the name of a secret: up to 128 letters, digits, dots, dashes and "
            f"underscores, got {name[:140]!r}",
            pointer=pointer,
        )


def vault_of(desk: Desk) -> Vault:
    """The vault of this node."""
    if desk.vault is None:
        raise Locked("this node was given no master key, so it can neither seal nor open")
    return desk.vault


async def put_secret(
    desk: Desk,
    tenant: TenantId,
    name: str,
    value: bytes,
    *,
    keep: int,
    by: str | None,
    origins: Sequence[str] | None = None,
) -> Written:
    """Keep a value as the newest version; `keep` of them stay, this one included.

    A new secret says where it may be sent; without origins a known one stays bound as it is.
    """
    check_secret_name(name)
    if not value:
        raise Invalid("expected a value, got an empty one", pointer="/value")
    if len(value) > VALUE_BYTES_MAX:
        # Not what it was: sentences end up in logs.
        raise TooLarge(
            f"expected a value of at most {VALUE_BYTES_MAX} bytes, got {len(value)}",
            pointer="/value",
        )
    bound = None if origins is None else read_origins(origins)
    vault = vault_of(desk)

    async def work(connection: Connection) -> Written:
        known = await rows.read_secret(connection, tenant, name)
        if not known and bound is None:
            raise Invalid(
                "expected origins beside a new secret: where it may be sent, such as "
                '["https://api.example.com"] or ["https://*.example.com"], or ["*"] for anywhere',
                pointer="/origins",
            )
        rebound = bool(known) and bound is not None and bound != known[0].origins
        if rebound:
            await rows.bind_secret(connection, tenant, name, bound or ())
            known = [replace(one, origins=bound or ()) for one in known]
        if known and hmac.compare_digest(await _value(connection, vault, tenant, known[0]), value):
            await rows.forget_before(connection, tenant, name, known[0].version - keep + 1)
            return Written(name_of(known[:keep]), created=False, changed=rebound)
        if not known and await rows.count_secrets(connection, tenant) >= SECRETS_MAX:
            raise OverQuota(f"expected at most {SECRETS_MAX} secrets")
        version = known[0].version + 1 if known else 1
        sealed = await vault.seal(connection, tenant, _place(name, version), value)
        fresh = SecretVersion(
            name=name,
            version=version,
            key_version=sealed.key_version,
            created_at=desk.clock.now(),
            created_by=by,
            sealed=sealed.content,
            origins=known[0].origins if known else bound or (),
        )
        if not await rows.insert_secret(connection, tenant, fresh):
            raise Conflict("the secret was written by somebody else at the same time; write again")
        await rows.forget_before(connection, tenant, name, version - keep + 1)
        return Written(name_of([fresh, *known[: keep - 1]]), created=not known, changed=True)

    return await desk.transact(work, tenant=tenant)


async def bind_secret(
    desk: Desk, tenant: TenantId, name: str, origins: Sequence[str]
) -> SecretName:
    """Say anew where a secret may be sent; deliveries hear of it within seconds."""
    bound = read_origins(origins)

    async def work(connection: Connection) -> SecretName:
        await rows.bind_secret(connection, tenant, name, bound)
        found = await rows.read_secret(connection, tenant, name)
        if not found:
            raise NotFound(f"there is no secret {name[:140]!r}")
        return name_of(found)

    return await desk.transact(work, tenant=tenant)


async def read_bindings(
    desk: Desk, tenant: TenantId, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Where secrets may be sent; those that do not exist are missing."""

    async def work(connection: Connection) -> dict[str, tuple[str, ...]]:
        return await rows.read_bindings(connection, tenant, names)

    return await desk.transact(work, tenant=tenant)


async def list_secrets(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[SecretName]:
    """A page of names."""

    async def work(connection: Connection) -> list[SecretName]:
        return await rows.list_secrets(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def get_secret(desk: Desk, tenant: TenantId, name: str) -> list[SecretVersion]:
    """The versions of a secret, newest first; sealed as they are."""

    async def work(connection: Connection) -> list[SecretVersion]:
        found = await rows.read_secret(connection, tenant, name)
        if not found:
            raise NotFound(f"there is no secret {name[:140]!r}")
        return found

    return await desk.transact(work, tenant=tenant)


async def delete_secret(
    desk: Desk, tenant: TenantId, name: str, *, version: int | None = None
) -> None:
    """Forget a secret, or one version of it."""

    async def work(connection: Connection) -> None:
        if not await rows.delete_secret(connection, tenant, name, version=version):
            raise NotFound(f"there is no secret {name[:140]!r}")

    await desk.transact(work, tenant=tenant)


async def open_secrets(desk: Desk, tenant: TenantId, names: Sequence[str]) -> dict[str, OpenSecret]:
    """What secrets are, each newest first, and where they may go; what is not there is missing."""
    vault = vault_of(desk)

    async def work(connection: Connection) -> dict[str, OpenSecret]:
        found = await rows.read_secrets(connection, tenant, names)
        keys = await vault.keyring(connection, tenant)
        opened: dict[str, list[bytes]] = {}
        for one in found:
            opened.setdefault(one.name, []).append(keys.open(*_sealed(one)))
        bound = {one.name: one.origins for one in found}
        return {name: OpenSecret(values, bound[name]) for name, values in opened.items()}

    return await desk.transact(work, tenant=tenant)


async def reseal_secrets(
    connection: Connection, vault: Vault, tenant: TenantId, *, most: int
) -> int:
    """Seal some secrets anew under the newest data key; how many were looked at."""
    newest = await vault.newest(connection, tenant)
    found = await rows.under_old_keys(connection, tenant, newest=newest, most=most)
    for one in found:
        value = await _value(connection, vault, tenant, one)
        sealed = await vault.seal(connection, tenant, _place(one.name, one.version), value)
        fresh = SecretVersion(
            name=one.name,
            version=one.version,
            key_version=sealed.key_version,
            created_at=one.created_at,
            created_by=one.created_by,
            sealed=sealed.content,
            origins=one.origins,
        )
        await rows.reseal(connection, tenant, fresh, was=one.key_version)
    return len(found)


async def _value(
    connection: Connection, vault: Vault, tenant: TenantId, one: SecretVersion
) -> bytes:
    return await vault.open(connection, tenant, *_sealed(one))


def _sealed(one: SecretVersion) -> tuple[tuple[object, ...], Sealed]:
    return _place(one.name, one.version), Sealed(one.key_version, one.sealed)


def _place(name: str, version: int) -> tuple[object, ...]:
    return "secrets", name, version, "sealed"


def name_of(versions: Sequence[SecretVersion]) -> SecretName:
    """What may be shown of a secret, from its versions."""
    newest = versions[0]
    return SecretName(
        name=newest.name,
        version=newest.version,
        versions=len(versions),
        created_at=versions[-1].created_at,
        updated_at=newest.created_at,
        created_by=newest.created_by,
        origins=newest.origins,
    )
