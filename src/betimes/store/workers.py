"""Workers, as they report themselves."""

from dataclasses import dataclass
from datetime import datetime

from betimes.domain.ids import NodeId, TenantId, WorkerId
from betimes.store.ask import one
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("workers")
NAMES_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCard:
    """What a worker says about itself once."""

    id: WorkerId
    node: NodeId | None
    name: str
    version: str
    queues: tuple[str, ...]
    handlers: tuple[str, ...]
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """Handlers and queues that somebody has named lately."""

    handlers: frozenset[str]
    queues: frozenset[str]


async def read_known_names(
    connection: Connection, tenant: TenantId, *, since: datetime
) -> KnownNames:
    """What workers of a tenant and of the service have named, and which queues have settings."""
    row = await one(connection, SQL["read_known_names"], tenant=tenant, since=since, most=NAMES_MAX)
    return KnownNames(handlers=frozenset(row["handlers"]), queues=frozenset(row["queues"]))


@dataclass(frozen=True, slots=True)
class Workers:
    """The list of workers."""

    database: Database

    async def beat(
        self,
        card: WorkerCard,
        *,
        busy: int,
        skew_ms: float | None,
        draining: bool,
        now: datetime | None,
    ) -> None:
        """Say that a worker is alive. Safe to repeat."""
        await self.database.many(
            SQL["report_worker"],
            lane=Lane.COMPLETE,
            id=card.id,
            node=card.node,
            name=card.name,
            version=card.version,
            queues=list(card.queues),
            handlers=list(card.handlers),
            slots=card.slots,
            busy=busy,
            skew_ms=skew_ms,
            draining=draining,
            now=now,
        )

    async def leave(self, worker: WorkerId) -> None:
        """Forget a worker that says goodbye."""
        await self.database.many(SQL["leave_worker"], lane=Lane.COMPLETE, id=worker)
