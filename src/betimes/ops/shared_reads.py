"""Reads that different callers ask for at the same time share one transaction.

A read of one row costs its transaction more than the row: begin, role, read, commit. Whoever comes
while all slots are taken joins those who already wait, and one of them reads for all. The
transaction begins after everybody in it has asked, so nobody misses what was committed before. An
idle system adds no delay.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from betimes.domain.errors import SchedulerError
from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.store.pool import Connection

K = TypeVar("K")
V = TypeVar("V")

SLOTS = 2
KEYS_MAX = 200

Read = Callable[[Connection, Sequence[K]], Awaitable[Mapping[K, V]]]
"""Finds what there is of many keys, in one transaction of one tenant."""


@dataclass(slots=True)
class Company(Generic[K, V]):
    """Those of one tenant whose keys are read together; the first of them reads."""

    keys: set[K] = field(default_factory=set)
    found: "asyncio.Future[Mapping[K, V] | SchedulerError | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class SharedReads(Generic[K, V]):
    """Reads by key; None for what is not there."""

    def __init__(self, *, desk: Desk, read: Read[K, V]) -> None:
        self._desk = desk
        self._read = read
        self._waiting: dict[TenantId, Company[K, V]] = {}
        self._slots = asyncio.Semaphore(SLOTS)
        self.transactions = 0

    async def get(self, tenant: TenantId, key: K) -> V | None:
        """What a key stands for, as of now."""
        company = self._waiting.get(tenant)
        if company is None or len(company.keys) >= KEYS_MAX:
            return (await self._lead(tenant, key)).get(key)
        company.keys.add(key)
        match await asyncio.shield(company.found):
            case SchedulerError() as error:
                raise error.copy()
            case None:  # the one who read was called away
                return (await self._load(tenant, [key])).get(key)
            case found:
                return found.get(key)

    async def _lead(self, tenant: TenantId, key: K) -> Mapping[K, V]:
        company = self._waiting[tenant] = Company[K, V](keys={key})
        told: Mapping[K, V] | SchedulerError | None = None
        try:
            async with self._slots:
                self._close(tenant, company)
                told = found = await self._load(tenant, list(company.keys))
                return found
        except SchedulerError as error:
            told = error.copy()
            raise
        finally:
            self._close(tenant, company)
            company.found.set_result(told)

    def _close(self, tenant: TenantId, company: Company[K, V]) -> None:
        """Let nobody join any more: the transaction is about to begin."""
        if self._waiting.get(tenant) is company:
            del self._waiting[tenant]

    async def _load(self, tenant: TenantId, keys: Sequence[K]) -> Mapping[K, V]:
        self.transactions += 1
        return await self._desk.transact(
            lambda connection: self._read(connection, keys), tenant=tenant
        )
