"""Gates of one process: the short line in memory, and what is told."""

import asyncio
from itertools import pairwise
from uuid import UUID

import pytest

from betimes.domain.errors import Unavailable
from betimes.target import gates as target_gates
from betimes.target.gate import Health, Hold, Rules
from betimes.target.gates import Breaker, Gates
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from worker_kit import settle_down

TENANT, ORIGIN = UUID(int=1), "https://example.com"


def some_gates(**rules: int) -> Gates:
    clock = ManualClock()
    recorder = Recorder()
    return Gates(
        rules=Rules(**rules), clock=clock, telemetry=Telemetry(clock=clock, handlers=[recorder])
    )


def end(gates: Gates, health: Health = Health.GOOD) -> None:
    gates.done(TENANT, ORIGIN, health, seconds=0.01, pause=None)


async def test_a_short_line_waits_in_memory_and_the_rest_goes_back() -> None:
    """Of a slow origin a quarter of the ceiling waits here; whoever ends lets the next one in."""
    gates = some_gates(ceiling=4)
    assert await gates.ask(TENANT, ORIGIN, retry=False) is None
    gates.done(TENANT, ORIGIN, Health.GOOD, seconds=10.0, pause=None)
    for _ in range(4):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
    waiting = asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False))  # noqa: TID251
    await asyncio.sleep(0)  # noqa: TID251 -- passes the turn
    held = await gates.ask(TENANT, ORIGIN, retry=False)
    assert held is not None
    assert held.why is Hold.ORIGIN_BUSY
    assert not waiting.done()
    end(gates)
    assert await waiting is None


async def test_the_line_of_a_fast_origin_is_as_long_as_it_serves_in_a_moment() -> None:
    """Who would have to come back later than his turn comes stays; the others go."""
    gates = some_gates(ceiling=2)
    for _ in range(100):  # until it is known that it answers within five milliseconds
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
        gates.done(TENANT, ORIGIN, Health.GOOD, seconds=0.005, pause=None)
    for _ in range(2):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
    line = [
        asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False))  # noqa: TID251
        for _ in range(30)
    ]
    await asyncio.sleep(0)  # noqa: TID251 -- passes the turn
    waiting = [one for one in line if not one.done()]
    assert len(waiting) == 20
    for place in waiting:
        end(gates)
        assert await place is None
    for one in line:
        held = await one
        assert (held is None) == (one in waiting)


async def test_one_who_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    """Cancelled in line, or dropped on the way."""
    gates = some_gates(ceiling=8)
    for _ in range(8):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
    first, second = (
        asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False))  # noqa: TID251
        for _ in range(2)
    )
    await asyncio.sleep(0)  # noqa: TID251 -- passes the turn
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    gates.dropped(TENANT, ORIGIN)
    assert await second is None


async def test_who_is_put_off_for_long_comes_back_in_company() -> None:
    """A thousand that wait for a dead origin return at few instants, spread over half a minute."""
    gates = some_gates()
    for _ in range(5):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
        end(gates, Health.BAD)
    waits = []
    for _ in range(5_000):
        held = await gates.ask(TENANT, ORIGIN, retry=False)
        assert held is not None
        waits.append(held.seconds)
    far = [wait for wait in waits if wait > 2]
    assert len(far) > 4_900
    assert len({round(wait, 3) for wait in far}) <= 70
    assert max(waits) <= 70


async def test_tenants_do_not_share_a_gate() -> None:
    """One tenant's failures do not stop another."""
    gates = some_gates()
    for _ in range(5):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
        end(gates, Health.BAD)
    assert await gates.ask(TENANT, ORIGIN, retry=False) is not None
    assert await gates.ask(UUID(int=2), ORIGIN, retry=False) is None


class Away:
    """A store that is away."""

    async def tell(self, _: object) -> None:
        raise Unavailable("away")

    async def broken(self) -> tuple[object, list[Breaker]]:
        raise Unavailable("away")

    async def claim(self, *_: object, seconds: float) -> bool:
        raise Unavailable(f"away for {seconds}")


async def test_without_the_store_each_decides_for_itself() -> None:
    """A breaker opens, and a probe is made without asking anybody."""
    clock = ManualClock()
    recorder = Recorder()
    gates = Gates(
        rules=Rules(),
        clock=clock,
        telemetry=Telemetry(clock=clock, handlers=[recorder]),
        breakers=Away(),  # type: ignore[arg-type]
    )
    for _ in range(5):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
        end(gates, Health.BAD)
    await gates.tick()
    assert await gates.ask(TENANT, ORIGIN, retry=False) is not None
    clock.advance(3)
    assert await gates.ask(TENANT, ORIGIN, retry=False) is None
    assert [event.name for event in recorder.events if event.name.startswith("breaker")] == [
        "breaker.opened"
    ]


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def back(gates: Gates, clock: ManualClock) -> None:
    """An origin that failed, was probed and found well."""
    for _ in range(5):
        assert await gates.ask(TENANT, ORIGIN, retry=False) is None
        end(gates, Health.BAD)
    clock.advance(3)
    assert await gates.ask(TENANT, ORIGIN, retry=False) is None, "the probe"
    end(gates)


async def test_whose_turn_comes_soon_waits_in_line_and_the_rest_comes_back() -> None:
    """Of fifty at once twenty wait two seconds at ten a second; they are let in one by one."""
    clock = ManualClock()
    gates = Gates(rules=Rules(), clock=clock, telemetry=Telemetry(clock=clock))
    await back(gates, clock)
    asked = [
        asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False, stay=yes))  # noqa: TID251
        for _ in range(50)
    ]
    await settle_down()
    away = [one.result() for one in asked if one.done()]
    sent_away = [held for held in away if held is not None]
    assert len(away) - len(sent_away) == 1, "one has its turn at once"
    assert len(sent_away) == 29
    assert min(held.seconds for held in sent_away) >= 2.0, "behind those in line"
    assert len({round(held.seconds, 3) for held in sent_away}) <= 4, "in company"
    begun = []
    for _ in range(100):
        clock.advance(0.025)
        await settle_down()
        begun.append(sum(one.done() for one in asked) - len(away))
    assert begun[-1] == 20
    assert all(later - earlier <= 1 for earlier, later in pairwise(begun)), begun
    assert [await one for one in asked[1:21]] == [None] * 20, "in the order they came"


async def test_nobody_overtakes_who_stands_in_line() -> None:
    """Also not when a turn has come and the first has not taken it yet."""
    clock = ManualClock()
    gates = Gates(rules=Rules(), clock=clock, telemetry=Telemetry(clock=clock))
    await back(gates, clock)
    assert await gates.ask(TENANT, ORIGIN, retry=False, stay=yes) is None
    first = asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False, stay=yes))  # noqa: TID251
    await settle_down()
    clock.advance(0.11)
    late = asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False, stay=yes))  # noqa: TID251
    await settle_down()
    assert first.done()
    assert not late.done()
    clock.advance(0.11)
    await settle_down()
    assert await late is None


async def test_who_may_not_stay_leaves_the_line() -> None:
    """And whoever is cancelled in it; the next one has the turn."""
    clock = ManualClock()
    gates = Gates(rules=Rules(), clock=clock, telemetry=Telemetry(clock=clock))
    await back(gates, clock)
    assert await gates.ask(TENANT, ORIGIN, retry=False, stay=yes) is None
    held = await gates.ask(TENANT, ORIGIN, retry=False, stay=no)
    assert held is not None
    assert held.why is Hold.ORIGIN_RATE
    first, second = (
        asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False, stay=yes))  # noqa: TID251
        for _ in range(2)
    )
    await settle_down()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await settle_down()
    clock.advance(0.11)
    await settle_down()
    assert await second is None


async def test_a_breaker_that_opens_sends_the_line_away() -> None:
    """Each with an appointment of its own."""
    clock = ManualClock()
    gates = Gates(rules=Rules(), clock=clock, telemetry=Telemetry(clock=clock))
    await back(gates, clock)
    assert await gates.ask(TENANT, ORIGIN, retry=False, stay=yes) is None
    line = [
        asyncio.ensure_future(gates.ask(TENANT, ORIGIN, retry=False, stay=yes))  # noqa: TID251
        for _ in range(10)
    ]
    await settle_down()
    for _ in range(5):
        gates.done(TENANT, ORIGIN, Health.BAD, seconds=0.01, pause=None)
    clock.advance(0.11)
    await settle_down()
    helds = [await one for one in line]
    assert {held.why for held in helds if held is not None} == {Hold.BREAKER_OPEN}
    assert None not in helds


async def test_looking_for_room_costs_each_new_origin_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where all are in use and nothing can be forgotten."""
    monkeypatch.setattr(target_gates, "GATES_MAX", 100)
    gates = some_gates()
    gates._full_at = 100
    looks = 0
    forget = gates._forget

    def counted() -> None:
        nonlocal looks
        looks += 1
        forget()

    monkeypatch.setattr(gates, "_forget", counted)
    for number in range(1_000):
        assert await gates.ask(TENANT, f"https://{number}.example", retry=False) is None
    assert looks <= 1_000 // 25
    for number in range(1_000):
        gates.done(TENANT, f"https://{number}.example", Health.GOOD, seconds=0.01, pause=None)
    for number in range(1_000, 1_026):
        assert await gates.ask(TENANT, f"https://{number}.example", retry=False) is None
    assert len(gates._entries) <= 126, "what is no longer in use goes with the next look"
