"""The relay between outboxes and a served API: every committed row makes one run."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from api_kit import Served
from api_kit import served as serving
from betimes import App
from betimes.domain.errors import BadSetting, Unavailable
from betimes.outbox import SCHEMAS
from betimes.relay import Relay, outbox_at
from betimes.relay.service import sender
from betimes.rhythm import Stopping
from betimes.sdk.client import AsyncClient
from betimes.telemetry import Recorder, Telemetry
from betimes.testing.postgres import PostgresKit
from betimes.testing.real_clock import RealClock
from relay_process import POINTS
from store_kit import eventually, owner

PROCESS = Path(__file__).parents[1] / "relay_process.py"
SECOND = timedelta(seconds=1)
app = App(name="shop")


@app.task(queue="mail")
def send_receipt(order: int) -> None:
    """The handler is never called here."""


@dataclass
class Scene:
    """A shop with a database of its own, and the service."""

    address: str
    api: Served
    dsn: str
    key: str
    opened: list[Any] = field(default_factory=list)

    async def close(self) -> None:
        for one in self.opened:
            await one.close()

    async def buy(self, *orders: int, **options: Any) -> None:
        task = send_receipt.configure(**options)
        if self.address.startswith("sqlite"):
            await asyncio.to_thread(self._buy, task, orders)
            return
        connection = await asyncpg.connect(self.address)
        async with connection.transaction():
            for order in orders:
                await app.tx(connection, outbox=True).aenqueue(task, order)
        await connection.close()

    def _buy(self, task: Any, orders: tuple[int, ...]) -> None:
        connection = sqlite3.connect(self.address.removeprefix("sqlite:///"))
        with connection:
            for order in orders:
                app.tx(connection, outbox=True).enqueue(task, order)
        connection.close()

    async def ask(self, statement: str) -> list[Any]:
        """A look into the outbox."""
        if self.address.startswith("sqlite"):
            connection = sqlite3.connect(self.address.removeprefix("sqlite:///"))
            found = connection.execute(statement).fetchall()
            connection.commit()
            connection.close()
            return [row[0] for row in found]
        connected = await asyncpg.connect(self.address)
        rows = await connected.fetch(statement)
        await connected.close()
        return [row[0] for row in rows]

    async def made(self) -> list[bytes]:
        async with owner(self.dsn) as connection:
            rows = await connection.fetch("SELECT payload FROM betimes.runs ORDER BY payload")
        return [row["payload"] for row in rows]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.api.port}"

    def relay(self, recorder: Recorder | None = None, **wishes: Any) -> Relay:
        clock = RealClock()
        client = AsyncClient(
            wishes.pop("url", self.url), wishes.pop("key", self.key), retry_for=0, timeout=5.0
        )
        outbox = outbox_at(self.address)
        self.opened += [client, outbox]
        telemetry = Telemetry(clock=clock, handlers=[recorder or Recorder()])
        return Relay(
            outbox=outbox,
            send=sender(client),
            clock=clock,
            telemetry=telemetry,
            every=wishes.pop("every", SECOND),
            **wishes,
        )


@pytest.fixture(params=["postgresql", "sqlite"])
async def scene(
    request: pytest.FixtureRequest, dsn: str, postgres: PostgresKit, tmp_path: Path
) -> AsyncIterator[Scene]:
    async with serving(dsn) as api:
        key = await api.key()
        if request.param == "sqlite":
            connection = sqlite3.connect(tmp_path / "shop.db")
            connection.executescript(SCHEMAS["sqlite"] * 2)
            connection.close()
            shop = Scene(f"sqlite:///{tmp_path / 'shop.db'}", api, dsn, key)
            yield shop
            await shop.close()
            return
        name = await postgres.create(template="template0")
        connected = await asyncpg.connect(postgres.dsn(name))
        await connected.execute(SCHEMAS["postgresql"] * 2)
        await connected.close()
        shop = Scene(postgres.dsn(name), api, dsn, key)
        yield shop
        await shop.close()
        await postgres.drop(name)


async def test_rows_become_runs_and_go(scene: Scene) -> None:
    await scene.buy(1, 2)
    await scene.buy(3, delay="1h", dedupe_key="a")
    await scene.buy(4, dedupe_key="a")
    relay = scene.relay(batch_max=3)

    assert (await relay.tick(), await relay.tick(), await relay.tick()) == (3, 1, 0)
    # The fourth is a duplicate of the third: the service knows, nobody fails.
    assert await scene.made() == [b'{"order":1}', b'{"order":2}', b'{"order":3}']
    assert await scene.ask("SELECT id FROM betimes_outbox") == []


@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_nothing_is_lost_and_nothing_doubled(
    scene: Scene, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.buy(1)
    monkeypatch.setenv("BETIMES_API_KEY", scene.key)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROCESS), scene.address, scene.url, point),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).decode().strip() == point
    process.kill()
    await process.wait()

    relay = scene.relay()

    async def all_gone() -> bool:
        # The locks of a process that was killed go when the server notices.
        await relay.tick()
        return not await scene.ask("SELECT id FROM betimes_outbox")

    await eventually(all_gone, what="an empty outbox")
    assert await scene.made() == [b'{"order":1}']


async def test_what_is_never_taken_is_put_aside_and_stops_nobody(scene: Scene) -> None:
    await scene.buy(1, queue="a:b")
    await scene.buy(2)
    recorder = Recorder()

    assert await scene.relay(recorder).tick() == 1
    assert await scene.made() == [b'{"order":2}']
    (why,) = await scene.ask("SELECT refused FROM betimes_outbox")
    assert "queue" in why
    assert recorder.named("relay.refused")
    assert await scene.relay().tick() == 0


async def test_a_wrong_key_or_an_absent_service_costs_no_row(scene: Scene) -> None:
    await scene.buy(1, 2, 3)
    with pytest.raises(Unavailable, match="our key"):
        await scene.relay(key="btm_sk_wrong").tick()
    with pytest.raises(Unavailable, match="service is away"):
        await scene.relay(url="http://127.0.0.1:9").tick()

    assert await scene.ask("SELECT refused FROM betimes_outbox") == [None] * 3
    assert await scene.relay().tick() == 3


async def test_what_cannot_be_now_is_tried_later(scene: Scene) -> None:
    async with owner(scene.dsn) as connection:
        await connection.execute(
            "INSERT INTO betimes.queues (tenant_id, name, draining)"
            " SELECT id, 'mail', true FROM betimes.tenants"
        )
    await scene.buy(1)
    assert await scene.relay().tick() == 0
    assert await scene.relay().tick() == 0
    (later,) = await scene.ask("SELECT retry_at FROM betimes_outbox")
    assert later is not None
    async with owner(scene.dsn) as connection:
        await connection.execute("DELETE FROM betimes.queues")
    await scene.ask("UPDATE betimes_outbox SET retry_at = NULL RETURNING 1")

    relay = scene.relay()
    await eventually(relay.tick, what="a queue that is open again")


async def test_it_runs_until_it_is_asked_to_stop_and_tells_what_it_did(scene: Scene) -> None:
    recorder, stopping = Recorder(), Stopping()
    relay = scene.relay(recorder, every=timedelta(milliseconds=20))
    async with asyncio.TaskGroup() as group:
        group.create_task(relay.run(stopping))
        await scene.buy(1)

        async def carried() -> bool:
            return await scene.made() == [b'{"order":1}']

        await eventually(carried, what="the run")
        stopping.request("the test is over")
    told = recorder.named("relay.carried")
    assert [event.measurements["carried"] for event in told] == [1.0]


async def test_two_relays_share_the_work(scene: Scene) -> None:
    await scene.buy(*range(30))
    await asyncio.gather(scene.relay(batch_max=7).tick(), scene.relay(batch_max=7).tick())
    while await scene.relay(batch_max=7).tick():
        pass
    assert len(await scene.made()) == 30


async def test_an_outbox_that_is_away_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="there is none"):
        outbox_at(f"sqlite:///{tmp_path}/nothing.db")
    with pytest.raises(BadSetting, match="expected postgresql"):
        outbox_at("mysql://host/db")
    with pytest.raises(Unavailable, match="outbox is away"):
        async with outbox_at("postgresql://nobody@127.0.0.1:9/x").batch(1):
            pass
