"""A relay that stops for good at a chosen point: `python relay_process.py ADDRESS URL POINT`.

At the point it says so on stdout and waits to be killed.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from betimes.relay import Relay, Row, outbox_at
from betimes.relay.service import sender
from betimes.sdk.client import AsyncClient
from betimes.telemetry import Telemetry
from betimes.testing.real_clock import RealClock

POINTS = ("before", "sent", "settled", "done")


async def die(point: str) -> None:
    sys.stdout.write(f"{point}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def main(address: str, url: str, point: str) -> None:
    client = AsyncClient(url)
    outbox = outbox_at(address)
    send, batch = sender(client), outbox.batch

    async def stopping_send(row: Row) -> None:
        if point == "before":
            await die(point)
        await send(row)
        if point == "sent":
            await die(point)

    @asynccontextmanager
    async def stopping_batch(most: int) -> AsyncIterator[Any]:
        async with batch(most) as ours:
            settle = ours.settle

            async def stopping_settle(verdict: Any) -> None:
                await settle(verdict)
                if point == "settled":
                    await die(point)

            ours.settle = stopping_settle  # type: ignore[method-assign]
            yield ours

    outbox.batch = stopping_batch  # type: ignore[method-assign]
    clock = RealClock()
    relay = Relay(
        outbox=outbox,
        send=stopping_send,
        clock=clock,
        telemetry=Telemetry(clock=clock),
        every=timedelta(seconds=1),
    )
    await relay.tick()
    await die("done")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
