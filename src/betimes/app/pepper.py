"""The pepper: a secret of the service, beside the database and never in it."""

import os
import stat
from hashlib import blake2b
from pathlib import Path

from betimes.app.dice import Dice
from betimes.app.node import Node
from betimes.config import Settings
from betimes.domain.errors import BadSetting
from betimes.embedded import default_data
from betimes.store.keys import adopt_pepper

PEPPER_BYTES = 32
PEPPER_TEXT_MIN = 32
MODE = 0o600
OTHERS = 0o077


def pepper_of(settings: Settings, dice: Dice) -> bytes:
    """The pepper that is given, or the one that is kept in its file, made the first time."""
    given = settings.api.pepper
    if given is not None:
        if len(given) < PEPPER_TEXT_MIN:
            raise BadSetting(
                f"expected api.pepper with at least {PEPPER_TEXT_MIN} characters, got {len(given)}"
            )
        return blake2b(given.encode(), digest_size=PEPPER_BYTES).digest()
    place = pepper_file(settings)
    place.parent.mkdir(parents=True, exist_ok=True)
    return bytes.fromhex(kept_secret(place, dice.entropy(PEPPER_BYTES).hex()))


def pepper_file(settings: Settings) -> Path:
    """Where the pepper is kept: beside the data, so that it is neither in it nor far from it."""
    if settings.api.pepper_file is not None:
        return settings.api.pepper_file
    data = settings.embedded.data or default_data(settings.embedded.home / "betimes")
    return data.with_name(f"{data.name}.pepper")


def kept_secret(place: Path, fresh: str) -> str:
    """What stands in a file that only we may read; written now if there is none."""
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    except FileExistsError:
        return read_private(place).strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{fresh}\n")
        file.flush()
        os.fsync(file.fileno())
    return fresh


def read_private(place: Path) -> str:
    """What stands in a file with a secret of ours, if nobody else may read it.

    Raises:
        BadSetting: others may; what to do about it.

    """
    with place.open(encoding="ascii") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & OTHERS:
            raise BadSetting(
                f"expected {place} to be for its owner only, because whoever reads it can open "
                f"what it protects, got mode {mode:04o}; run: chmod {MODE:o} {place}"
            )
        return file.read()


def derived(pepper: bytes, purpose: bytes) -> bytes:
    """A secret for one purpose, so that no two purposes share one."""
    return blake2b(purpose, key=pepper, digest_size=PEPPER_BYTES).digest()


async def peppered(node: Node) -> bytes:
    """The pepper, if it is the one this database was first used with."""
    pepper = pepper_of(node.settings, node.dice)
    check = derived(pepper, b"check")
    if await adopt_pepper(node.database, check) != check:
        raise BadSetting(
            "expected the pepper this database was first used with, got another one; "
            "set api.pepper or api.pepper_file to it"
        )
    return pepper
