"""Where the service is."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from betimes.domain.errors import BadSetting

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and the prefix its paths have."""

    text: str
    host: str
    port: int
    secure: bool
    prefix: str = ""


def read_address(url: str) -> Address:
    """An address from a URL.

    Raises:
        BadSetting: it is none that a client can call.

    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in PORTS or not parts.hostname or port == -1:
        raise BadSetting(f"expected a URL such as http://127.0.0.1:8090, got {url[:200]!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadSetting("expected a URL without user, query and fragment")
    return Address(
        text=f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"),
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        secure=parts.scheme == "https",
        prefix=parts.path.rstrip("/"),
    )
