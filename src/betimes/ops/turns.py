"""Whose turn it is: shares by virtual time, pure.

    tenants by weight  ─▶  their queues by weight  ─▶  fairness keys, equally  ─▶  shards by rank

Each level knows only its own rivals: how much a tenant has had says nothing about its queues.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice, pairwise
from typing import TypeVar

from betimes.domain.ids import TenantId
from betimes.domain.leased import Source
from betimes.fairness.share import Shares
from betimes.store.rules import NO_RULES, Rules

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)
KEPT_MAX = 10_000
SLACK = timedelta(seconds=1)
"""So much later is as good as the best: a step of priority is ten times as much, and what is due at
one moment is leased many at a time."""

Queue = tuple[TenantId, str]
Tree = dict[TenantId, dict[str, dict[int, list[Source]]]]


class Turns:
    """Who has had how much, as seen by one worker, or by one node for those that speak HTTP."""

    def __init__(self) -> None:
        self._tenants: Shares[TenantId] = Shares()
        self._queues: dict[TenantId, Shares[str]] = {}
        self._keys: dict[Queue, Shares[int]] = {}
        self.rules: Rules = NO_RULES
        """What holds now; whoever reads them puts them here."""

    def pick(self, due: Sequence[Source], *, most: int) -> list[Source]:
        """Sources in the order of service; among the shards of one place the first in line."""
        if len(due) <= 1:
            return list(due)
        return list(islice(self._walk(_grow(due)), most))

    def charge(self, runs: Mapping[Source, float]) -> None:
        """So many runs came from where; what was only expected is taken back as less than none."""
        for source, amount in runs.items():
            tenant, queue = source.tenant, source.queue
            rule = self.rules.queue(tenant, queue)
            self._tenants.charge(tenant, amount, self.rules.tenant(tenant).weight)
            _shares(self._queues, tenant).charge(queue, amount, rule.weight)
            if source.fair and rule.fairness == "key":
                _shares(self._keys, (tenant, queue)).charge(source.fair, amount, 1.0)

    def _walk(self, tree: Tree) -> Iterator[Source]:
        tenants = {tenant: self.rules.tenant(tenant).weight for tenant in tree}
        for tenant in self._tenants.order(tenants):
            queues = tree[tenant]
            for queue in self._order_queues(tenant, queues):
                keys = queues[queue]
                for fair in self._order_keys((tenant, queue), keys):
                    yield from keys[fair]

    def _order_queues(self, tenant: TenantId, queues: Mapping[str, object]) -> list[str]:
        if len(queues) == 1:
            return list(queues)
        weights = {queue: self.rules.queue(tenant, queue).weight for queue in queues}
        return _shares(self._queues, tenant).order(weights)

    def _order_keys(self, queue: Queue, keys: Mapping[int, object]) -> list[int]:
        if len(keys) == 1 or self.rules.queue(*queue).fairness != "key":
            return list(keys)
        return _shares(self._keys, queue).order(dict.fromkeys(keys, 1.0))


def best_first(
    sources: Sequence[Source], ranks: Mapping[Source, datetime]
) -> tuple[list[Source], dict[Source, datetime]]:
    """The shards of each place by the best rank in them, without those that have none.

    Each but the last of a place has a bound: what comes after it has to leave the turn to the next.
    """
    order: list[Source] = []
    bounds: dict[Source, datetime] = {}
    for _, shards in groupby(sources, key=lambda source: source[1:]):
        row = sorted((one for one in shards if one in ranks), key=lambda one: ranks[one])
        order += row
        bounds |= {one: ranks[after] + SLACK for one, after in pairwise(row)}
    return order, bounds


def _grow(due: Sequence[Source]) -> Tree:
    tree: Tree = {}
    for source in due:
        queues = tree.setdefault(source.tenant, {})
        queues.setdefault(source.queue, {}).setdefault(source.fair, []).append(source)
    return tree


def _shares(kept: dict[K, Shares[V]], key: K) -> Shares[V]:
    shares = kept.get(key)
    if shares is None:
        if len(kept) >= KEPT_MAX:
            kept.clear()  # everybody begins anew, as who comes back after a pause does
        shares = kept[key] = Shares()
    return shares
