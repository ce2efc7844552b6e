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
    payloads: Annotated[
        str,
        Rule(
            "`sealed`: payloads and results that lie in their rows, and what is said about runs "
            "(errors, evidence of attempts, log lines, progress, checkpoints, answers of "
            "endpoints), are sealed under the tenant's data key, too. Every node needs the master "
            "keys then. What was written before stays as it is, and is read either way.",
            choices=("plain", "sealed"),
        ),
    ] = "plain"
    rotate_after: Annotated[
        timedelta,
        Rule("Age at which the data key of a tenant is replaced.", least=HOUR, most=3_650 * DAY),
    ] = 90 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSettings:
    """Where payloads and results over the inline limit are kept; always sealed."""

    backend: Annotated[
        str,
        Rule(
            "`database`, a `directory` that every node reaches, or a store that speaks `s3`.",
            choices=("database", "directory", "s3"),
        ),
    ] = "database"
    directory: Annotated[Path | None, Rule("The directory, for that backend.")] = None
    s3_endpoint: Annotated[
        str | None,
        Rule("Where the store answers, such as `https://s3.eu-central-1.amazonaws.com`."),
    ] = None
    s3_bucket: Annotated[str | None, Rule("The bucket; it must be there already.")] = None
    s3_prefix: Annotated[str, Rule("What the names of objects begin with.")] = "betimes/"
    s3_region: Annotated[str, Rule("The region that requests are signed for.")] = "us-east-1"
    s3_access_key: Annotated[str | None, Rule("Who signs requests.", secret=True)] = None
    s3_secret_key: Annotated[str | None, Rule("What signs requests.", secret=True)] = None
    results: Annotated[
        str,
        Rule(
            "How long a result over the inline limit is kept: a class.",
            choices=("brief", "standard", "long", "archive"),
        ),
    ] = "standard"
