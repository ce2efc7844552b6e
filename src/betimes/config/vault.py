"""Settings of what is sealed, and of where large things are kept."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from betimes.config.rule import Rule
from betimes.config.units import HOUR

DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultSettings:
    """The keys that seal secrets and large payloads.

    Every node needs the same master keys. They are never in the database, so keep a copy of them:
    without them nothing that was sealed can be opened again.
    """

    keys: Annotated[
        tuple[str, ...] | None,
        Rule(
            "Master keys of 32 bytes in hexadecimal, separated by commas: first the one in use, "
            "then those it replaces. Without any, they are read from `keys_file`.",
            secret=True,
        ),
    ] = None
    keys_file: Annotated[
        Path | None,
        Rule(
            "A file with one master key in each line, which only the service may read. By default "
            "beside the data, and made with a fresh key the first time."
        ),
    ] = None
    rotate_after: Annotated[
        timedelta,
        Rule("Age at which the data key of a tenant is replaced.", least=HOUR, most=3_650 * DAY),
    ] = 90 * DAY
