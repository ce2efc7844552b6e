"""The master keys: beside the database and never in it."""

from collections.abc import Iterable
from pathlib import Path

from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.app.pepper import kept_secret, pepper_file, read_private
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.domain.errors import BadSetting
from betimes.embedded import default_data
from betimes.ops.vault import MasterKey, Vault
from betimes.store.database import Database
from betimes.store.seal import KEY_BYTES
from betimes.store.vault import adopt_master

NEEDS_KEYS = (
    "expected vault.keys or vault.keys_file with the master key of this database: "
    "vault.payloads is sealed"
)


def masters_of(settings: Settings, dice: Dice, *, make: bool) -> list[MasterKey]:
    """The keys that are given, or those in their file; with `make` a first one is made."""
    if settings.vault.keys:
        return _read(settings.vault.keys, where="vault.keys")
    place = masters_file(settings)
    if make:
        place.parent.mkdir(parents=True, exist_ok=True)
        kept_secret(place, dice.entropy(KEY_BYTES).hex())
    try:
        lines = read_private(place).split()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"expected master keys in {place}, got {error}") from None
    return _read(lines, where=str(place))


def masters_file(settings: Settings) -> Path:
    """Where master keys are kept: beside the data, so that a copy of it does not hold them."""
    if settings.vault.keys_file is not None:
        return settings.vault.keys_file
    data = settings.embedded.data or default_data(settings.embedded.home / "betimes")
    return data.with_name(f"{data.name}.keys")


def require_private(settings: Settings) -> None:
    """Refuse to start beside secrets on disk that others may read, whatever roles there are.

    Raises:
        BadSetting: which file, and what to do about it.

    """
    given = {
        pepper_file(settings): settings.api.pepper,
        masters_file(settings): settings.vault.keys,
    }
    for place, value in given.items():
        if value is None and place.exists():
            read_private(place)


async def required_vault(node: Node) -> Vault:
    """The vault of a node that must have one: with the keys this database is used with."""
    masters = masters_of(node.settings, node.dice, make=True)
    vault = _vault(node, masters)
    wanted = await adopt_master(node.database, vault.master.id)
    if not vault.knows(wanted):
        raise BadSetting(
            f"expected the master key {wanted.hex()} that this database is used with, got "
            f"{vault.master.id.hex()}; set vault.keys or vault.keys_file to it"
        )
    return vault


async def possible_vault(node: Node) -> Vault | None:
    """The vault, if this node has the keys for it; none are made here."""
    masters = masters_of(node.settings, node.dice, make=False)
    if masters:
        vault = _vault(node, masters)
        if vault.knows(await adopt_master(node.database, vault.master.id)):
            return vault
    node.telemetry.event("vault.locked", level="warning")
    return None


async def opening_vault(node: Node) -> Vault | None:
    """The same, for a node that handles payloads: where they are sealed, it must have the keys."""
    vault = await possible_vault(node)
    if vault is None and node.settings.vault.payloads == "sealed":
        raise BadSetting(NEEDS_KEYS)
    return vault


async def vault_beside(
    database: Database, settings: Settings, clock: Clock, dice: Dice
) -> Vault | None:
    """The vault of a process that is no node, if it has the keys this database is used with.

    Another key must not be used: what it would seal nobody else could open.
    """
    masters = masters_of(settings, dice, make=False)
    if masters:
        vault = Vault(masters=masters, clock=clock, entropy=dice.entropy)
        if vault.knows(await adopt_master(database, vault.master.id)):
            return vault
    if settings.vault.payloads == "sealed":
        raise BadSetting(NEEDS_KEYS)
    return None


def _vault(node: Node, masters: list[MasterKey]) -> Vault:
    return Vault(masters=masters, clock=node.clock, entropy=node.dice.entropy)


def _read(texts: Iterable[str], *, where: str) -> list[MasterKey]:
    keys = []
    for text in texts:
        try:
            key = bytes.fromhex(text)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise BadSetting(f"expected keys of {KEY_BYTES} bytes in hexadecimal in {where}")
        keys.append(MasterKey(key))
    if not keys:
        raise BadSetting(f"expected a master key in {where}, got none")
    return keys
