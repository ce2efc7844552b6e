"""What tasks say while they work, told to the database itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from betimes.api.shaping import maybe_instant
from betimes.domain.ids import TenantId
from betimes.ops import leases
from betimes.ops.desk import Desk
from betimes.wire import workers as wire


@dataclass(frozen=True, slots=True)
class DirectNotes:
    """Notes of attempts, by the verbs behind the routes; a lease is named by what it is."""

    desk: Desk
    tenant: TenantId

    async def progress(self, lease: leases.HeldLease, told: wire.Progress) -> None:
        """How far a run has come."""
        await self._note(lease, leases.Note(told.percent, told.message, None))

    async def checkpoint(self, lease: leases.HeldLease, data: bytes) -> None:
        """Where its next attempt may begin."""
        await self._note(lease, leases.Note(None, None, data))

    async def log(self, lease: leases.HeldLease, lines: Sequence[wire.LogLine]) -> None:
        """Lines for its log."""
        now = await self.desk.transact(self.desk.now, tenant=self.tenant)
        told = [
            leases.LogLine(
                at=maybe_instant(line.at, pointer="/at") or now,
                level=line.level,
                message=line.message,
                fields=line.fields,
            )
            for line in lines
        ]
        await leases.add_logs(self.desk, self.tenant, lease, told)

    async def _note(self, lease: leases.HeldLease, said: leases.Note) -> None:
        await leases.note(self.desk, self.tenant, lease, said)
