"""Gates of several processes on one database, and an origin that dies under load."""

import heapq
import math
from collections.abc import Collection
from uuid import UUID

from betimes.app.delivery import StoredBreakers
from betimes.domain.ids import WorkerId
from betimes.store.database import Database
from betimes.target.gate import BreakerState, Health, Hold, Rules
from betimes.target.gates import Gates
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from worker_kit import rows

TENANT = UUID("00000000-0000-8000-8000-000000000001")
DEAD, WELL = "https://dead.example", "https://well.example"


def some_gates(database: Database, clock: ManualClock, number: int, **rules: int) -> Gates:
    return Gates(
        rules=Rules(**rules),
        clock=clock,
        telemetry=Telemetry(clock=clock, handlers=[Recorder()]),
        breakers=StoredBreakers(database, WorkerId(UUID(int=number)), clock=clock),
    )


async def fail(gates: Gates, times: int, origin: str = DEAD) -> None:
    for _ in range(times):
        assert await gates.ask(TENANT, origin, retry=False) is None
        gates.done(TENANT, origin, Health.BAD, seconds=0.01, pause=None)


async def test_a_breaker_opens_for_every_worker(database: Database, clock: ManualClock) -> None:
    """One finds out, all leave the origin alone; one probes, all go on."""
    one, other = (some_gates(database, clock, number) for number in (1, 2))
    assert await other.ask(TENANT, DEAD, retry=False) is None
    other.done(TENANT, DEAD, Health.GOOD, seconds=0.01, pause=None)
    await other.tick()
    await fail(one, 5)
    await one.tick()
    await other.tick()
    held = await other.ask(TENANT, DEAD, retry=False)
    assert held is not None
    assert held.why is Hold.BREAKER_OPEN
    clock.advance(2)
    assert await one.ask(TENANT, DEAD, retry=False) is None, "the probe"
    assert await other.ask(TENANT, DEAD, retry=False) is not None, "somebody probes already"
    one.done(TENANT, DEAD, Health.GOOD, seconds=0.01, pause=None)
    await one.tick()
    await other.tick()
    assert await other.ask(TENANT, DEAD, retry=False) is None
    (row,) = await rows(database, "SELECT origin, state FROM betimes.breakers")
    assert (row["origin"], row["state"]) == (DEAD, BreakerState.CLOSED)


async def test_a_prober_that_dies_is_replaced(database: Database, clock: ManualClock) -> None:
    """After a while somebody else may try."""
    one, other = (some_gates(database, clock, number) for number in (1, 2))
    await fail(one, 5)
    await fail(other, 5)
    await one.tick()
    await other.tick()
    clock.advance(2)
    assert await one.ask(TENANT, DEAD, retry=False) is None
    assert await other.ask(TENANT, DEAD, retry=False) is not None
    clock.advance(36)
    assert await other.ask(TENANT, DEAD, retry=False) is None


def brought_forward(
    waiting: list[tuple[float, int, int]], behind: dict[int, int], now: float
) -> list[tuple[float, int, int]]:
    """What the store does with parcels that wait for a breaker: along the ramp they come back."""
    moved = [one for one in waiting if one[1] not in behind]
    for place, (who, tries) in enumerate(sorted(behind.items()), 1):
        moved.append((now + 5.0 * math.log2(1.0 + place / 50.0), who, tries))
    heapq.heapify(moved)
    return moved


async def test_a_target_that_dies_for_ten_minutes(  # noqa: PLR0915 -- a simulation, step by step
    database: Database, clock: ManualClock
) -> None:
    """A thousand runs a minute: only probes reach it, nobody is lost, and it comes back slowly.

    Time is the test's; the gates, their appointments and the shared breakers are real.
    """
    woken: list[object] = []
    gates = some_gates(database, clock, 1, ceiling=64)
    told = gates._breakers
    assert told is not None

    async def wake(closed: Collection[object]) -> None:
        woken.extend(closed)

    told.wake = wake  # type: ignore[method-assign]
    behind: dict[int, int] = {}
    dies, back, ends = 60.0, 660.0, 900.0
    waiting = [(number * 0.06, number, 1) for number in range(int(ends / 0.06))]
    heapq.heapify(waiting)
    sent: list[float] = []
    well: list[float] = []
    done: dict[int, float] = {}
    now = 0.0
    ticked = 0.0
    while waiting and now < ends + 600:
        at, number, attempt = heapq.heappop(waiting)
        if at > now:
            clock.advance(at - now)
            now = at
        if now - ticked >= 5:
            await gates.tick()
            ticked = now
            if (TENANT, DEAD) in woken:
                waiting = brought_forward(waiting, behind, now)
                behind.clear()
            woken.clear()
            assert await gates.ask(TENANT, WELL, retry=False) is None, "others are not held up"
            gates.done(TENANT, WELL, Health.GOOD, seconds=0.01, pause=None)
            well.append(now)
        held = await gates.ask(TENANT, DEAD, retry=attempt > 1)
        behind.pop(number, None)
        if held is not None:
            heapq.heappush(waiting, (now + held.seconds, number, attempt))
            if held.waits_for_breaker:
                behind[number] = attempt
            continue
        sent.append(now)
        if dies <= now < back:
            gates.done(TENANT, DEAD, Health.BAD, seconds=0.01, pause=None)
            heapq.heappush(waiting, (now + 5.0 * attempt, number, attempt + 1))
        else:
            gates.done(TENANT, DEAD, Health.GOOD, seconds=0.01, pause=None)
            done[number] = now
    assert len(done) == int(ends / 0.06), "no run is lost"
    during = [at for at in sent if dies <= at < back]
    assert len(during) <= 5 + (back - dies) / 15, "failures until it opened, then probes"
    after = [at for at in sent if back <= at]
    first = after[0]
    assert first < back + 31, "found well at the next probe"
    for second in range(40):
        passed = sum(first + second <= at < first + second + 1 for at in after)
        assert passed <= 1.2 * 10 * 2 ** ((second + 1) / 5) + 5, "twice as many every five seconds"
    late = max(at - number * 0.06 for number, at in done.items() if at > back)
    assert late < (back - dies) + 150, "the backlog is gone within minutes"
