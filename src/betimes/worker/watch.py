"""What the main loop makes of heartbeats: whom to believe, whom to stop, what to give back."""

from collections.abc import Collection, Iterable
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import RunId
from betimes.domain.leased import Renewed
from betimes.rhythm import DatabaseTime, beat
from betimes.telemetry import Outage, Telemetry
from betimes.worker.heartbeat import Answer, Pulse
from betimes.worker.held import HeldParcel, HeldParcels, trust_seconds
from betimes.worker.running import Runnings, Stop
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.transport import Holds, Reports

LOOKS_PER_HEARTBEAT = 5
LOOK_EVERY = timedelta(seconds=1)
"""At the latest: so soon does an attempt learn that it is no longer wanted."""


class Watch:
    """Stops work whose lease is gone or doubtful, and work that somebody wants ended."""

    def __init__(
        self,
        *,
        holds: Holds,
        reports: Reports,
        held: HeldParcels,
        running: Runnings,
        pulse: Pulse,
        clock: Clock,
        time: DatabaseTime,
        every: timedelta,
        ttl: timedelta,
        telemetry: Telemetry,
        signals: WorkerSignals = NO_SIGNALS,
    ) -> None:
        self._holds = holds
        self._reports = reports
        self._held = held
        self._running = running
        self._pulse = pulse
        self._clock = clock
        self._time = time
        self._every = every
        self._trust = trust_seconds(ttl)
        self._telemetry = telemetry
        self._signals = signals
        self._strays: list[Renewed] = []
        self._heartbeats = Outage(duty="worker.heartbeat", telemetry=telemetry)
        self._questions = Outage(duty="worker.watch", telemetry=telemetry)

    def hear(self, answer: Answer) -> None:
        """Learn from a heartbeat. Called on the main loop."""
        if answer.fault is not None:
            self._heartbeats.failed(answer.fault)
            return
        self._heartbeats.ended()
        heard = answer.renewal
        if heard.told is not None:
            self._time.observe(heard.told, asked_at=answer.asked_at, heard_at=answer.heard_at)
        lost = self._held.renewed(heard.renewed, asked_at=answer.asked_at, trust=self._trust)
        self._lose((parcel for parcel in lost if parcel.left), "heartbeat")
        self._strays += self._held.strays(heard.renewed)
        for run in heard.unwanted:
            self._stop(run)
        self._signals.heard(len(heard.renewed))

    async def run(self) -> None:
        """Look after the work until cancelled; the sign of life is left here, on the main loop."""
        seen: set[RunId] = set()
        async for turn in beat(
            self._clock, every=min(self._every / LOOKS_PER_HEARTBEAT, LOOK_EVERY)
        ):
            self._pulse.note()
            # What began since the last look is left alone: most of it is over by the next one.
            old, seen = seen, {running.run.id for running in self._running}
            self._lose_untrusted()
            if self._strays or old & seen or turn % LOOKS_PER_HEARTBEAT == 0:
                await self.tick(old)

    async def tick(self, among: Collection[RunId] | None = None) -> int:
        """Ask about what is under way; how many attempts were stopped. Tests call this."""
        self._lose_untrusted()
        try:
            with self._telemetry.span("worker.watch") as span:
                span.expect_errors()  # the outage tells them, once
                stopped = await self._stop_unwanted(among)
                await self._give_back_strays()
                span.add(stopped=stopped)
        except Unavailable as error:
            self._questions.failed(error)
            return 0
        self._questions.ended()
        return stopped

    def _lose_untrusted(self) -> None:
        """What is only to be told has ended in time: whoever hears of it judges its fence."""
        doubtful = self._held.untrusted(self._clock.monotonic())
        self._lose((parcel for parcel in doubtful if parcel.left), "silence")

    def _lose(self, parcels: Iterable[HeldParcel], found: str) -> None:
        """Stop believing in leases: what runs under them is stopped and not reported."""
        for parcel in parcels:
            self._reports.lose(parcel, found=found)
        for running in self._running:
            if running.parcel.lost:
                self._running.stop(running, Stop.LOST)

    async def _stop_unwanted(self, among: Collection[RunId] | None) -> int:
        held = {
            running.run.id: running.parcel.leased.fence
            for running in self._running
            if running.stop is None and (among is None or running.run.id in among)
        }
        stopped = 0
        for run in await self._holds.unwanted(held) if held else ():
            stopped += self._stop(RunId(run))
        return stopped

    def _stop(self, run: RunId) -> bool:
        found = self._running.get(run)
        if found is not None:
            self._running.stop(found, Stop.CANCEL)
        return found is not None

    async def _give_back_strays(self) -> None:
        strays, self._strays = self._strays, []
        if strays:
            await self._holds.return_strays(strays)
        for stray in strays:
            self._telemetry.event("worker.stray", level="warning", parcel=str(stray.id))
