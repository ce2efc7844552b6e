"""What tenants and queues have agreed upon: weights, ceilings and rates, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from json import loads
from typing import NamedTuple

import asyncpg

from betimes.domain.ids import TenantId
from betimes.domain.retry import RetryPolicy
from betimes.domain.spec import retry_from_json
from betimes.fairness.bucket import Bucket, Rate
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("rules")
MINUTE, SECOND, MILLISECOND = timedelta(minutes=1), timedelta(seconds=1), timedelta(milliseconds=1)


class TenantRule(NamedTuple):
    """A tenant among the others."""

    weight: float = 1.0
    most: int | None = None
    rate: Rate | None = None
    told_all: bool = False
    """Whether it wants to be told of every start and success."""


class QueueRule(NamedTuple):
    """A queue among those of its tenant."""

    weight: float = 1.0
    fairness: str = "tenant"
    most: int | None = None
    rate: Rate | None = None
    retry: RetryPolicy | None = None


TENANT_DEFAULT, QUEUE_DEFAULT = TenantRule(), QueueRule()


@dataclass(frozen=True, slots=True)
class Rules:
    """Only those that are not like all others."""

    tenants: Mapping[TenantId, TenantRule] = field(default_factory=dict)
    queues: Mapping[tuple[TenantId, str], QueueRule] = field(default_factory=dict)

    def tenant(self, tenant: TenantId) -> TenantRule:
        """What holds for a tenant."""
        return self.tenants.get(tenant, TENANT_DEFAULT)

    def queue(self, tenant: TenantId, queue: str) -> QueueRule:
        """What holds for a queue."""
        return self.queues.get((tenant, queue), QUEUE_DEFAULT)

    @property
    def has_retries(self) -> bool:
        """Whether any queue has a way to retry of its own."""
        return any(rule.retry is not None for rule in self.queues.values())

    def limited(self, tenant: TenantId, queue: str) -> bool:
        """Whether what is leased there has to be counted."""
        if not self.tenants and not self.queues:
            return False
        tenants, queues = self.tenant(tenant), self.queue(tenant, queue)
        return (tenants.most, tenants.rate, queues.most, queues.rate) != (None, None, None, None)


NO_RULES = Rules()


def rate_of(limit: int | None, per: timedelta | None) -> Rate | None:
    """A rate that lets through what belongs to one second at once, and at least one."""
    if not limit or not per:
        return None
    return Rate(limit, per, max(1.0, limit * (SECOND / per)))


def bucket_of(
    rate: Rate, tokens: float | None, refilled_at: datetime | None, now: datetime
) -> Bucket:
    """A stored bucket; a rate that was lowered leaves no old wealth behind."""
    if tokens is None or refilled_at is None:
        return Bucket.full(rate, now)
    return Bucket(min(tokens, rate.burst), refilled_at)


def rules_of(tenants: Sequence[asyncpg.Record], queues: Sequence[asyncpg.Record]) -> Rules:
    """Rows as rules."""
    return Rules(
        {
            row["tenant_id"]: TenantRule(
                row["weight"], row["most"], rate_of(row["per_minute"], MINUTE), row["told_all"]
            )
            for row in tenants
        },
        {
            (row["tenant_id"], row["name"]): QueueRule(
                row["weight"],
                row["fairness"],
                row["most"],
                rate_of(row["rate_limit"], (row["rate_per_ms"] or 0) * MILLISECOND),
                None if row["retry"] is None else retry_from_json(loads(row["retry"])),
            )
            for row in queues
        },
    )


async def read_rules(connection: Connection, tenant: TenantId) -> Rules:
    """The rules of one tenant."""
    return rules_of(
        await SQL["read_tenant_rules"].fetch(connection, tenants=[tenant]),
        await SQL["read_queue_rules"].fetch(connection, tenants=[tenant]),
    )


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """The worker's look at them, now and then; not repeated, because there is a next time."""

    database: Database

    async def read(self) -> Rules:
        """All of them."""
        many = self.database.many
        return rules_of(
            await many(SQL["read_tenant_rules"], lane=Lane.ENGINE, tenants=None),
            await many(SQL["read_queue_rules"], lane=Lane.ENGINE, tenants=None),
        )
