"""Gates of one process: the short line in memory, and what is told."""

import asyncio
from uuid import UUID

from betimes.domain.errors import Unavailable
from betimes.target.gate import Health, Hold, Rules
from betimes.target.gates import Breaker, Gates
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock

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
    far = [wait for wait in waits if wait > 15]
    assert len(far) > 3_000
    assert len({round(wait, 3) for wait in far}) <= 30
    assert max(waits) <= 70
    near = [wait for wait in waits if wait <= 10]
    assert len({round(wait, 6) for wait in near}) == len(near), "the next ones come one by one"


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
