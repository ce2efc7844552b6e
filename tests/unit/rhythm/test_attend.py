"""A background duty goes on through outages and crashes on anything else."""

from datetime import timedelta

import pytest

from betimes.domain.errors import Bug, Unavailable
from betimes.rhythm import Stopping, attend, beat
from betimes.telemetry import Outage, Recorder, Telemetry
from betimes.testing import ManualClock


class Duty:
    """Fails as it is told, then asks to stop."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.stopping = Stopping()

    async def tick(self) -> None:
        answer = self.answers.pop(0)
        if not self.answers:
            self.stopping.request("done")
        if answer is not None:
            raise answer

    async def run(self, clock: ManualClock, recorder: Recorder, *, survives: bool = False) -> None:
        telemetry = Telemetry(clock=clock, handlers=[recorder])
        every = timedelta(0)
        beats = beat(clock, every=every, stopping=self.stopping)
        troubles = Outage(duty="x", telemetry=telemetry)
        await attend(self.tick, beats=beats, troubles=troubles, survives=survives)


async def test_an_outage_is_told_once_and_its_end_too(clock: ManualClock) -> None:
    recorder = Recorder()
    away = Unavailable("away")
    await Duty(None, away, away, away, None, None).run(clock, recorder)
    told = [event.name for event in recorder.events if event.level != "debug"]
    assert told == ["outage.began", "outage.ended"]


async def test_any_other_error_ends_the_duty(clock: ManualClock) -> None:
    with pytest.raises(Bug):
        await Duty(None, Bug("ours"), None).run(clock, Recorder())


async def test_a_duty_that_keeps_nothing_in_memory_survives_any_error(clock: ManualClock) -> None:
    recorder = Recorder()
    await Duty(None, Bug("ours"), KeyError("ours"), None).run(clock, recorder, survives=True)
    told = [event.name for event in recorder.events if event.level != "debug"]
    assert told == ["outage.began", "outage.ended"]
