"""Rules of the operator, opened for a tenant where its settings say so."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from betimes.domain.errors import BadSetting
from betimes.target.address import Address, AddressPolicy, Network
from betimes.target.redact import Redaction
from betimes.target.url import PORT_MAX, PortRange, UrlPolicy

KEY = "targets"
"""Where a tenant's settings keep its rules: `{"allow": […], "names": […], "plain_http": true,
"redact_headers": […], "redact_paths": […]}`."""


def base_policy(
    *,
    allow: Iterable[str] = (),
    names: Iterable[str] = (),
    ports: Iterable[str] = (),
    own: frozenset[Address] = frozenset(),
    loopback: bool = False,
    plain_http: bool = False,
    redact_headers: Iterable[str] = (),
    redact_paths: Iterable[str] = (),
) -> UrlPolicy:
    """The rules of this node, from its settings."""
    networks = tuple(_network(text, "target.allow") for text in allow)
    return UrlPolicy(
        addresses=AddressPolicy(allowed=networks, own=own, loopback=loopback),
        plain_http=plain_http,
        ports=tuple(_ports(text) for text in ports),
        names=frozenset(name.lower() for name in names),
        redaction=Redaction().and_also(redact_headers, redact_paths),
    )


def policy_for(base: UrlPolicy, settings: Mapping[str, Any]) -> UrlPolicy:
    """The rules for one tenant. What cannot be read opens nothing."""
    wanted = settings.get(KEY)
    if not isinstance(wanted, Mapping) or not wanted:
        return base
    addresses = base.addresses
    if networks := _networks(wanted.get("allow")):
        addresses = AddressPolicy(
            allowed=(*addresses.allowed, *networks),
            own=addresses.own,
            loopback=addresses.loopback,
        )
    names = [name.lower() for name in _texts(wanted.get("names"))]
    return replace(
        base,
        addresses=addresses,
        names=base.names | frozenset(names),
        plain_http=base.plain_http or wanted.get("plain_http") is True,
        redaction=redaction_for(base, settings),
    )


def redaction_for(base: UrlPolicy, settings: Mapping[str, Any]) -> Redaction:
    """What is hidden for one tenant: what the operator hides, and what its settings say."""
    wanted = settings.get(KEY)
    if not isinstance(wanted, Mapping):
        return base.redaction
    return base.redaction.and_also(
        _texts(wanted.get("redact_headers")), _texts(wanted.get("redact_paths"))
    )


def _networks(value: object) -> list[Network]:
    found = []
    for text in _texts(value):
        try:
            found.append(ip_network(text))
        except ValueError:
            continue
    return found


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _network(text: str, setting: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise BadSetting(
            f"expected networks such as 10.1.0.0/16 in {setting}, got {text!r}"
        ) from None


def _ports(text: str) -> PortRange:
    first, dash, last = text.partition("-")
    last = last if dash else first
    if not (first.isdecimal() and last.isdecimal()):
        raise BadSetting(f"expected ports such as 443 or 8000-9999 in target.ports, got {text!r}")
    ports = PortRange(int(first), int(last))
    if not 1 <= ports.first <= ports.last <= PORT_MAX:
        raise BadSetting(f"expected ports within 1-{PORT_MAX} in target.ports, got {text!r}")
    return ports
