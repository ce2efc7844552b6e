"""Data keys are replaced when they are old, and what they sealed follows."""

from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Locked
from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.ops.rotation import aged_tenants, reseal_some, rotate_key, tenants_to_reseal
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Items, Outage, Telemetry

EVERY = timedelta(minutes=10)
PASSES_MAX = 20
"""Bounded pieces for one tenant in one pass."""


class Rotator:
    """Replaces data keys; any number of janitors may, guards keep them apart."""

    def __init__(
        self, *, desk: Desk, clock: Clock, telemetry: Telemetry, older_than: timedelta
    ) -> None:
        self._desk = desk
        self._clock = clock
        self._telemetry = telemetry
        self._older_than = older_than
        self._outage = Outage(duty="janitor.rotator", telemetry=telemetry)
        self._tenants = Items(duty="janitor.rotator", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Look now and then, until asked to stop."""
        beats = beat(self._clock, every=EVERY, stopping=stopping)
        await attend(self.tick, beats=beats, troubles=self._outage, survives=True)

    async def tick(self) -> int:
        """One bounded pass; how many things were sealed anew."""
        if self._desk.vault is None:
            return 0
        with self._telemetry.span("rotator.tick") as span:
            span.expect_errors()
            aged = await aged_tenants(self._desk, older_than=self._older_than)
            rotated = await self._tenants.each(aged, lambda one: rotate_key(self._desk, one))
            old = await tenants_to_reseal(self._desk)
            done = sum(await self._tenants.each(old, self._reseal))
            span.add(rotated=len(rotated), resealed=done)
        return done

    async def _reseal(self, tenant: TenantId) -> int:
        done = 0
        try:
            for _ in range(PASSES_MAX):
                piece = await reseal_some(self._desk, tenant)
                done += piece
                if not piece:
                    break
        except Locked:
            # One broken row or an unknown master key holds up this tenant and nobody else.
            self._telemetry.event("vault.locked", level="warning")
        return done
