"""Database addresses: reading the pooler switch, and showing an address without its password."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

SCHEMES = ("postgresql://", "postgres://")
PASSWORD_IN_AUTHORITY = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@")
PASSWORD_IN_QUERY = re.compile(r"(?i)([?&](?:ssl)?password=)[^&#]*")
YES = frozenset({"true", "1", "yes", "on"})
NO = frozenset({"false", "0", "no", "off"})


class Address(NamedTuple):
    """An address the driver understands, and whether a pooler stands before it."""

    dsn: str
    pgbouncer: bool


def read_dsn(text: str) -> Address:
    """Take `pgbouncer=…` out of the query, since the server would refuse it; ValueError if bad."""
    dsn = text.strip()
    parts = urlsplit(dsn)
    if not dsn.startswith(SCHEMES):
        raise ValueError("not a postgresql:// address")
    parts.port  # noqa: B018 -- raises ValueError when the port is no number
    pieces = [piece.partition("=") for piece in parts.query.split("&")]
    switches = [value.lower() for name, _, value in pieces if name == "pgbouncer"]
    if not all(switch in YES | NO for switch in switches):
        raise ValueError("pgbouncer in the query must be true or false")
    if not switches:
        return Address(dsn, pgbouncer=False)
    rest = "&".join("".join(piece) for piece in pieces if piece[0] != "pgbouncer")
    base = dsn.partition("?")[0]
    return Address(f"{base}?{rest}" if rest else base, pgbouncer=switches[-1] in YES)


def hide_password(dsn: str) -> str:
    """The address as it may be shown."""
    return PASSWORD_IN_QUERY.sub(r"\1***", PASSWORD_IN_AUTHORITY.sub(r"\1:***@", dsn))
