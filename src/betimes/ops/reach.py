"""How far a caller reaches, and the one judge of what they make, change and take away."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network

from betimes.domain.errors import Forbidden
from betimes.domain.ids import TenantId
from betimes.wire.base import shown_maybe

ADMIN = "ak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a key that was checked, and the tenant it acts for."""

    key: str
    name: str
    kind: str
    tenant: TenantId
    slug: str
    timezone: str
    scopes: frozenset[str]
    queues: frozenset[str] | None
    expires_at: datetime | None
    quotas: "dict[str, int]"
    settings: "dict[str, object]"
    networks: tuple[str, ...] | None = None
    """The networks its key may be used from, if it is bound to some."""
    rejecting: bool = False
    """Whether its tenant accepts nothing new."""
    via: str = "key"
    """What stands for it in the audit: a key, or a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a key, a member or a device gets: what it may do, from where, for whom, until when.

    None stands for everything: every network, every queue, no end.
    """

    kind: str
    scopes: frozenset[str]
    networks: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    until: datetime | None = None


def check_reach(by: Caller, *, before: Reach | None = None, after: Reach | None = None) -> None:
    """Nobody makes, changes or takes away what reaches further than they do themselves.

    The one judge of keys, members and devices: `before` is what is changed or taken away, `after`
    what comes of it; either may be missing. What is changed may have lasted longer than the key
    that changes it, as long as it does not last longer for it: a key that expires may still
    revoke one that does not.

    Raises:
        Forbidden: it would reach further, and in which respect.

    """
    for reach in (before, after):
        if reach is not None:
            _check_within(by, reach)
    if after is not None and not _ends_in_time(by, after, before):
        raise Forbidden(
            "a key that expires makes nothing that outlives it: expected an end of at most "
            f"{shown_maybe(lasts_until(by))}"
        )


def _check_within(by: Caller, reach: Reach) -> None:
    # A kind is more than its scopes: an administrator's key acts for every tenant.
    if reach.kind == ADMIN and by.kind != ADMIN:
        raise Forbidden("only an administrator's key may make or change one of its kind")
    if lacking := sorted(reach.scopes - by.scopes):
        raise Forbidden(f"it includes the scope {lacking[0]}, which the caller lacks")
    networks, queues = reach.networks, reach.queues
    if by.networks is not None and (networks is None or not _all_within(networks, by.networks)):
        bound = ", ".join(by.networks) or "none"
        raise Forbidden(f"a key that is bound to networks reaches no other ones: {bound}")
    if by.queues is not None and (queues is None or not by.queues.issuperset(queues)):
        bound = ", ".join(sorted(by.queues)) or "none"
        raise Forbidden(f"a key that is bound to queues reaches no other ones: {bound}")


def lasts_until(by: Caller) -> datetime | None:
    """When what the caller may do ends; None for never.

    The session of a member ends within the day, and they open another one: what they may do lasts
    as long as they are members.
    """
    return None if by.via == "member" else by.expires_at


def _ends_in_time(by: Caller, after: Reach, before: Reach | None) -> bool:
    most = lasts_until(by)
    if most is None or (after.until is not None and after.until <= most):
        return True
    if before is None:
        return False
    return before.until is None or (after.until is not None and after.until <= before.until)


def _all_within(networks: Sequence[str], bound: Sequence[str]) -> bool:
    outer = [ip_network(one) for one in bound]
    return all(any(_is_part(ip_network(one), other) for other in outer) for one in networks)


def _is_part(one: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    same = one.version == other.version
    return same and one.subnet_of(other)  # type: ignore[arg-type]  # both are of one version
