"""Which addresses may be called: our own list, because the library's is not meant for this.

`ipaddress.is_global` answers for routing and has been wrong both ways between releases: it calls
NAT64 of loopback, 6to4 of private addresses and multicast global. Here an IPv4 address is refused
when a special-purpose block holds it, and an IPv6 address unless it is ordinary global unicast;
every form that carries an IPv4 address inside (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) is
refused outright, so that nothing has to be unwrapped correctly.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Refused whatever an allow-list says: cloud metadata services, and what is no host at all.
NEVER: tuple[tuple[str, str], ...] = (
    ("169.254.169.254/32", "a metadata service"),
    ("169.254.170.2/32", "a metadata service"),
    ("169.254.170.23/32", "a metadata service"),
    ("100.100.100.200/32", "a metadata service"),
    ("168.63.129.16/32", "a metadata service"),
    ("192.0.0.192/32", "a metadata service"),
    ("fd00:ec2::254/128", "a metadata service"),
    ("fd00:ec2::23/128", "a metadata service"),
    ("fd20:ce::254/128", "a metadata service"),
    ("0.0.0.0/8", "this network"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("::/128", "the unspecified address"),
    ("ff00::/8", "multicast"),
)
SPECIAL: tuple[tuple[str, str], ...] = (
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by a carrier"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "documentation"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("240.0.0.0/4", "reserved"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "an IPv4 address in IPv6 clothes"),
    ("::ffff:0:0:0/96", "an IPv4 address in IPv6 clothes"),
    ("::/96", "an IPv4 address in IPv6 clothes"),
    ("64:ff9b::/96", "an IPv4 address behind NAT64"),
    ("64:ff9b:1::/48", "an IPv4 address behind NAT64"),
    ("100::/64", "discarded by routers"),
    ("2001::/32", "a Teredo tunnel"),
    ("2001::/23", "reserved for protocols"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "an IPv4 address behind 6to4"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
LOOPBACK: tuple[Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The upper half of an interface id that carries an IPv4 address in its lower half."""
WORD, WORD_MASK = 32, 0xFFFF_FFFF
KNOWN_MAX = 10_000
"""Most verdicts that one policy remembers."""


def _table(entries: Iterable[tuple[str, str]]) -> tuple[tuple[Network, str], ...]:
    return tuple((ip_network(text), reason) for text, reason in entries)


_NEVER, _SPECIAL = _table(NEVER), _table(SPECIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Who may be called.

    `allowed` opens ranges that are refused otherwise; it cannot open a metadata service.
    `own` are addresses of this machine: nobody calls the scheduler through itself.
    `loopback` is for development, and is meant to be seen wherever it is on.
    """

    allowed: tuple[Network, ...] = ()
    own: frozenset[Address] = field(default_factory=frozenset)
    loopback: bool = False
    _known: dict[str, str | None] = field(default_factory=dict, repr=False, compare=False)

    def refusal(self, address: Address) -> str | None:
        """Why an address may not be called, in words; None when it may."""
        for network, reason in _NEVER:
            if address in network:
                return reason
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return "an address with a zone"
        if any(address in network for network in self.allowed):
            return None
        if self.loopback and any(address in network for network in LOOPBACK):
            return None
        if address in self.own:
            return "an address of this machine"
        return _special(address)

    def refusal_of(self, text: str) -> str | None:
        """The same for an address as text, such as a socket is given; remembered."""
        known = self._known
        if text not in known:
            if len(known) >= KNOWN_MAX:
                known.clear()
            address = read_address(text)
            known[text] = "not an address" if address is None else self.refusal(address)
        return known[text]


def _special(address: Address) -> str | None:
    for network, reason in _SPECIAL:
        if address in network:
            return reason
    if isinstance(address, IPv6Address):
        if address not in GLOBAL_UNICAST:
            return "not global unicast"
        if (int(address) >> WORD) & WORD_MASK in ISATAP:
            return "an IPv4 address in IPv6 clothes"
    return None


def read_address(text: str) -> Address | None:
    """An address in the one form that nobody can read otherwise; None for everything else."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_loopback(address: Address) -> bool:
    """Whether an address is this machine's own, in its plain form."""
    return any(address in network for network in LOOPBACK)
