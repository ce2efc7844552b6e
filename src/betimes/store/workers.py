"""Workers, as they report themselves."""

from dataclasses import dataclass
from datetime import datetime

from betimes.domain.ids import NodeId, WorkerId
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load

SQL = load("workers")


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
